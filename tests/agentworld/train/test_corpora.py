"""Corpora that are mixed with episodes: their shares, and the trained tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.recipes.train import CorpusRecipe, CptRecipe, NextTokenRecipe
from agentworld.records.corpus import Corpus, Document
from agentworld.runner.folders import checkpoint_of, model_of
from agentworld.steps.run import run_by_name
from agentworld.storage.receipts import read_receipt
from make import records
from make.training import samples as training_samples
from make.training import training

if TYPE_CHECKING:
    from agentworld.records.sample import Sample
    from agentworld.train.corpora import Mixture
    from agentworld.train.encode import Row
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute


def corpus(documents: Sequence[Document]) -> Corpus:
    """A corpus whose weight the recipe sets later."""
    return Corpus(records.digest("corpus"), 1.0, lambda: iter(documents))


def cpt(weights: dict[str, float], **fields: object) -> CptRecipe:
    corpora = {name: CorpusRecipe(address=name, weight=weight) for name, weight in weights.items()}
    return CptRecipe.model_validate({"stage": "cpt", "corpora": corpora, **fields})


def mix_rows(
    language_model: LanguageModel,
    samples: list[Sample],
    recipe: CptRecipe,
    corpora: dict[str, Corpus],
) -> tuple[Mixture, list[Row]]:
    """The mixture, and the rows of its corpora."""
    from agentworld.train.corpora import mix
    from agentworld.train.encode import encode, whole_episode

    episodes = list(encode(language_model.tokenizer, map(whole_episode, samples)))
    weighted = {
        name: entry._replace(weight=recipe.corpora[name].weight) for name, entry in corpora.items()
    }
    mixture = mix(language_model.tokenizer, recipe, episodes, weighted)
    assert mixture.rows[: len(episodes)] == episodes
    return mixture, mixture.rows[len(episodes) :]


def num_truncated(model: Path, most_tokens: int) -> dict[str, float]:
    """The number of longer episodes, and how many of these have no target in their first tokens."""
    from transformers import AutoTokenizer

    from agentworld.train.encode import encode, whole_episode

    tokenizer = AutoTokenizer.from_pretrained(model)
    rows = encode(tokenizer, map(whole_episode, training_samples()))
    long_rows = [row for row in rows if len(row.input_ids) > most_tokens]
    rows_without_target = [row for row in long_rows if not row.is_target[:most_tokens].any()]
    return {"truncated_samples": len(long_rows), "left_out_samples": len(rows_without_target)}


def num_tokens(rows: list[Row]) -> int:
    return sum(len(row.input_ids) for row in rows)


def notes(num: int, word: str = "note") -> list[Document]:
    return [Document(f"{word} {number} says {number * 7}") for number in range(num)]


def test_each_corpus_gets_the_tokens_of_its_weight_and_repeats_no_document(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    recipe = cpt({"law": 0.5, "news": 0.25})
    corpora = {"law": corpus(notes(2_000)), "news": corpus(notes(2_000, "news"))}
    mixture, rows = mix_rows(language_model, samples, recipe, corpora)
    num_episode_tokens = num_tokens(mixture.rows) - num_tokens(rows)
    longest = max(len(row.input_ids) for row in rows)
    for name, weight in (("law", 0.5), ("news", 0.25)):
        use = mixture.corpora[name]
        assert 0 <= use.num_tokens - weight * num_episode_tokens < longest
        assert use.share == pytest.approx(weight / 1.75, rel=0.05)
        assert use.target_share > use.share  # in an episode only observations are targets
    texts = [language_model.tokenizer.decode(row.input_ids) for row in rows]
    assert (
        len(set(texts)) == len(texts) == sum(use.num_documents for use in mixture.corpora.values())
    )
    numbers = [int(text.split()[1]) for text in texts if text.startswith("note")]
    assert 800 < sum(numbers) / len(numbers) < 1_200  # from the whole corpus, not its beginning


def test_a_mixture_is_fixed_by_its_seed_and_a_smaller_weight_selects_a_subset(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    corpora = {"law": corpus(notes(2_000))}

    def texts(weight: float, seed: int) -> set[str]:
        rows = mix_rows(language_model, samples, cpt({"law": weight}, seed=seed), corpora)[1]
        return {language_model.tokenizer.decode(row.input_ids) for row in rows}

    assert texts(0.5, 0) == texts(0.5, 0) != texts(0.5, 1)
    assert texts(0.25, 0) < texts(0.5, 0)


def test_mixing_encodes_few_documents_beyond_the_selected_ones(
    language_model: LanguageModel, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworld.train import corpora

    encoded: list[Document] = []
    rows_of = corpora._Encoder.rows_of
    monkeypatch.setattr(
        corpora._Encoder, "rows_of", lambda self, doc: encoded.append(doc) or rows_of(self, doc)
    )
    rows = mix_rows(language_model, samples, cpt({"law": 0.1}), {"law": corpus(notes(20_000))})[1]
    assert len(rows) <= len(encoded) < 1_000


def test_a_long_text_is_split_into_rows_whose_tokens_are_all_targets(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    text = "".join(chr(65 + number % 26) for number in range(400))
    recipe = cpt({"law": 0.01}, sequence_tokens=150)
    _, rows = mix_rows(
        language_model, samples, recipe, {"law": corpus([Document(""), Document(text)])}
    )
    assert [len(row.input_ids) for row in rows[:-1]] == [150] * (len(rows) - 1)
    assert len(rows) > 2
    assert all(row.is_target.all() for row in rows)
    tokens = [token for row in rows for token in row.input_ids]
    assert language_model.tokenizer.decode(tokens) == text + "<|end|>"


def test_only_the_completion_of_a_prompt_is_a_target(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    corpora = {"law": corpus([Document("Seven years.", "How long?")])}
    _, (row,) = mix_rows(language_model, samples, cpt({"law": 0.001}), corpora)
    decode = language_model.tokenizer.decode
    assert decode(row.input_ids) == "<|user|>How long?<|assistant|>Seven years.<|end|>"
    assert decode(row.input_ids[row.is_target]) == "Seven years.<|end|>"


def test_a_corpus_that_is_too_small_is_refused_with_its_largest_possible_weight(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    corpora = {"law": corpus(notes(3))}
    with pytest.raises(
        InputError, match=r"the corpus law has \d+ tokens, and its weight 0.5 asks"
    ) as error:
        mix_rows(language_model, samples, cpt({"law": 0.5}), corpora)
    max_weight = float(str(error.value).partition("at most ")[2].partition(",")[0])
    assert (
        mix_rows(language_model, samples, cpt({"law": max_weight}), corpora)[0]
        .corpora["law"]
        .num_documents
        == 3
    )


def test_only_cpt_accepts_corpora_and_recipes_without_corpora_keep_their_digests() -> None:
    assert "corpora" not in CptRecipe(stage="cpt").model_dump()
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        NextTokenRecipe.model_validate({"stage": "sft", "corpora": {}})
    with pytest.raises(ValidationError, match="greater than 0"):
        cpt({"law": 0.0})


def test_the_checkpoint_and_the_lineage_events_name_the_trained_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", f"file://{tmp_path}/events.jsonl")
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("A text of the law. " * 200)
    corpora = {"law": {"address": f"file://{texts}", "weight": 0.2}}
    cpt_settings = {"corpora": corpora, "epochs": 1, "sequence_tokens": 64}
    inputs = training(tmp_path / "store", cpt=cpt_settings)
    folder = Path(run_by_name("cpt", *inputs))
    counts = num_truncated(model_of(folder), 64)
    assert counts["truncated_samples"] > counts["left_out_samples"]
    assert counts.items() <= checkpoint_of(folder).metrics.items()
    use = checkpoint_of(folder).corpora["law"]
    assert use.num_documents == 1
    assert 0 < use.share < use.target_share < 1
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    start_event, end_event = map(json.loads, lines)
    input_names = {dataset["name"] for dataset in start_event["inputs"]}
    assert input_names == {use.content, read_receipt(Path(inputs.data)).output}
    assert [dataset["name"] for dataset in end_event["outputs"]] == [checkpoint_of(folder).artifact]

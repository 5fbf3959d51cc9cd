from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agentworld.errors import InputError
from agentworld.records.sample import Sample
from agentworld.rendering.messages import world_messages
from agentworld.steps.run import run_by_name
from make.training import training

if TYPE_CHECKING:
    from agentworld.train.encode import Row
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute


def encode_sample(language_model: LanguageModel, sample: Sample) -> Row:
    from agentworld.train.encode import encode, whole_episode

    (row,) = encode(language_model.tokenizer, [whole_episode(sample)])
    return row


def targets_as_text(language_model: LanguageModel, sample: Sample) -> str:
    row = encode_sample(language_model, sample)
    return str(language_model.tokenizer.decode(row.input_ids[row.is_target]))


def test_training_rows_begin_with_the_prompt_of_an_engine_request(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    sample = samples[2]
    row = encode_sample(language_model, sample)
    for target, turn in enumerate(sample.turns):
        messages = world_messages(sample.prompt, sample.turns[:target], turn.action)
        prompt_ids = language_model.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=True
        )["input_ids"]
        assert row.input_ids[: len(prompt_ids)].tolist() == prompt_ids


def test_the_loss_counts_every_observation_and_its_end_token(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    expected = "".join(f"{turn.observation}<|end|>" for turn in samples[0].turns)
    assert targets_as_text(language_model, samples[0]) == expected


def test_a_masked_turn_stays_as_context(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    turns = list(samples[0].turns)
    turns[1] = turns[1].model_copy(update={"target": False})
    masked_sample = samples[0].model_copy(update={"turns": tuple(turns)})
    expected = f"{turns[0].observation}<|end|>{turns[2].observation}<|end|>"
    assert targets_as_text(language_model, masked_sample) == expected


def test_a_row_contains_only_the_thought_of_its_own_turn(
    language_model: LanguageModel, samples: list[Sample]
) -> None:
    from agentworld.train.encode import encode, split_turns

    thoughts = [f"thought {turn}" for turn in range(len(samples[0].turns))]
    rows = list(encode(language_model.tokenizer, split_turns(samples[0], thoughts)))
    text = language_model.tokenizer.decode(rows[-1].input_ids)
    assert len(rows) == len(samples[0].turns)
    assert text.count("<think>") == 1
    assert f"<think>{thoughts[-1]}</think>{samples[0].turns[-1].observation}" in text


def test_truncated_rows_and_rows_left_without_a_target_are_counted() -> None:
    from agentworld.train.encode import Row, fit, truncation

    def row(length: int, target: int) -> Row:
        return Row(np.arange(length, dtype=np.int32), np.arange(length) == target)

    rows = [row(3, 1), row(4, 1), row(5, 1), row(6, 4), row(7, 5)]
    assert truncation(rows, 4) == {"truncated_samples": 3, "left_out_samples": 2}
    assert [len(fitted_row.input_ids) for fitted_row in fit(rows, 4)] == [3, 4, 4]
    assert truncation(rows, None) == {"truncated_samples": 0, "left_out_samples": 0}


@pytest.mark.parametrize("text", ["kolmir tanbes", "\x00\u2028é漢", "a\r\n\tb  c", "<think>"])
def test_any_text_round_trips_through_the_tokenizer(
    language_model: LanguageModel, text: str
) -> None:
    tokenizer = language_model.tokenizer
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("context", ["cat {}.txt", "{}", "a {} b", "x/{}", "\n{}\n[0] ~/{}"])
def test_a_word_has_the_same_tokens_in_every_context(
    language_model: LanguageModel, context: str
) -> None:
    tokenizer = language_model.tokenizer
    word = tokenizer.encode("zugvak")
    tokens = tokenizer.encode(context.replace("{}", "zugvak"))
    windows = np.lib.stride_tricks.sliding_window_view(tokens, len(word))
    assert (windows == word).all(axis=1).sum() == context.count("{}")


@pytest.mark.parametrize("stage", ["cpt", "sft"])
def test_samples_without_a_target_in_sequence_tokens_are_refused(
    stage: str, tmp_path: Path
) -> None:
    corpora = {"corpora": {"law": {"address": str(tmp_path / "law.txt"), "weight": 1}}}
    (tmp_path / "law.txt").write_text("rimo")
    settings = {"sequence_tokens": 2, **(corpora if stage == "cpt" else {})}
    inputs = training(tmp_path / "store", **{stage: settings})
    with pytest.raises(InputError, match=r"within sequence_tokens \(2\); raise it, or add data"):
        run_by_name(stage, *inputs)

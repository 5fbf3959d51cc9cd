"""The folder of a stage is known before the training: the step writes to that folder."""

import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.recipes import Recipe, load_recipe
from agentworld.recipes.train import CptRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.runner.task import Task
from agentworld.steps.content import check_unchanged
from agentworld.steps.cpt import _without_secrets
from agentworld.steps.run import folder_for, run_by_name
from agentworld.steps.table import names_of
from make import records


@pytest.mark.parametrize("stage", names_of("training"))
def test_a_stage_uses_the_folder_computed_by_folder_for(tmp_path, stage):
    inputs = [records.prepared(tmp_path, "data")]
    if stage != "cpt":
        inputs.append(str(records.trained_step(tmp_path, "cpt")))
    folder = folder_for(stage, "demo", str(tmp_path), *inputs)
    records.receipt(stage, records.digest("made")).write(
        folder / "receipt.json"
    )  # trained elsewhere
    assert run_by_name(stage, "demo", str(tmp_path), *inputs) == str(folder)


def test_another_recipe_or_input_has_another_folder(tmp_path):
    data = [records.prepared(tmp_path, name) for name in "ab"]
    pairs = [("demo", data[0]), ("demo", data[1]), ("smoke", data[0])]
    assert len({folder_for("cpt", recipe, str(tmp_path), path) for recipe, path in pairs}) == 3


def test_an_input_that_is_not_finished_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"receipt\.json is missing"):
        folder_for("cpt", "demo", str(tmp_path), str(tmp_path / "data"))


def recipe(folder: Path, **parts: object) -> str:
    """A file; JSON is YAML too."""
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    path.write_text(json.dumps({"name": "own", **parts}))
    return str(path)


def model(folder: Path, weights: str = "weights") -> str:
    (folder / "deep").mkdir(parents=True)
    (folder / "model.safetensors").write_text(weights)
    (folder / "deep/tokenizer.json").write_text("{}")
    return str(folder)


def reward(folder: str, weight: float = 0.5) -> dict[str, object]:
    return {"reward": {"embedding_model": folder, "embedding_weight": weight}}


RECIPE_PARTS = {
    "cpt": lambda folder: {"model": {"base": folder}},
    "rl": lambda folder: {"rl": reward(folder)},
}
"""The recipe's fields that name a folder, by the stage that reads it."""


@pytest.fixture
def folder_of_stage(tmp_path):
    """The folder of a stage whose recipe names a folder."""
    store = tmp_path / "store"
    parent = str(records.trained_step(store, "cpt"))
    inputs = [records.prepared(store, "a"), parent]

    def folder_of_stage(stage, folder):
        file = recipe(tmp_path, **RECIPE_PARTS[stage](folder))
        return folder_for(stage, file, str(store), *inputs[: 1 + (stage == "rl")])

    return folder_of_stage


@pytest.mark.parametrize("stage", RECIPE_PARTS)
def test_a_moved_model_folder_causes_no_new_training(tmp_path, folder_of_stage, stage):
    before = folder_of_stage(stage, model(tmp_path / "here"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert folder_of_stage(stage, str(tmp_path / "there")) == before


@pytest.mark.parametrize("stage", RECIPE_PARTS)
@pytest.mark.parametrize("file", ["model.safetensors", "deep/tokenizer.json", "new.json"])
def test_a_changed_model_folder_causes_a_new_training(tmp_path, folder_of_stage, stage, file):
    before = folder_of_stage(stage, model(tmp_path / "here"))
    (tmp_path / "here" / file).write_text("changed")
    assert folder_of_stage(stage, str(tmp_path / "here")) != before


def own_inputs(stage: str, spec: Recipe, store: Path) -> dict[str, str]:
    """A stage's inputs besides the folders of other steps."""
    folders = {"data": Path(records.prepared(store, "data"))}
    if stage != "cpt":
        folders["parent"] = records.trained_step(store, "sft")
    plan = import_module(f"agentworld.steps.{stage}").plan
    return dict(plan(Task(spec, Path("store"), folders, {}, {})).inputs)


@pytest.mark.parametrize(("stage", "name"), [("cpt", "base"), ("rl", "reward_model")])
def test_the_digest_of_a_folder_is_an_input_only_of_the_stage_that_reads_the_folder(
    tmp_path, stage, name
):
    folder = model(tmp_path / "here")
    spec = load_recipe(Path(recipe(tmp_path, **RECIPE_PARTS[stage](folder))))
    assert own_inputs(stage, spec, tmp_path) == {name: ArtifactManifest.of(Path(folder)).digest}
    assert own_inputs("sft", spec, tmp_path) == {}


def test_cpt_depends_on_the_content_and_weight_of_a_corpus_and_not_on_its_path(tmp_path):
    store, texts = tmp_path / "store", tmp_path / "texts"
    data = records.prepared(store, "a")
    texts.mkdir()
    (texts / "a.txt").write_text("text")

    def folder_of(path, **fields):
        corpora = {"law": {"address": str(path), "weight": 0.5, **fields}}
        file = recipe(tmp_path, cpt={"stage": "cpt", "learning_rate": 1e-3, "corpora": corpora})
        return folder_for("cpt", file, str(store), data)

    before = folder_of(texts)
    shutil.move(texts, tmp_path / "there")
    assert folder_of(tmp_path / "there") == before
    assert folder_of(tmp_path / "there", weight=0.4) != before
    (tmp_path / "there/a.txt").write_text("changed")
    assert folder_of(tmp_path / "there") != before


def test_a_checkpoint_omits_the_secrets_of_corpus_addresses():
    address = "https://somewhere/x.jsonl?sig=abc"
    recipe = CptRecipe.model_validate(
        {"stage": "cpt", "corpora": {"law": {"address": address, "weight": 1}}}
    )
    assert "abc" not in _without_secrets(recipe).model_dump_json()
    assert "https://somewhere/x.jsonl" in _without_secrets(recipe).model_dump_json()


def test_an_evaluation_depends_on_the_content_of_its_embedding_model_not_its_path(tmp_path):
    folder, store = model(tmp_path / "here"), tmp_path / "store"
    inputs = [
        records.prepared(store, "a"),
        str(records.finished_step(store, "cpt", records.digest("b"))),
    ]

    def folder_of(path):
        file = recipe(tmp_path, evaluate={"embedding_model": path})
        return folder_for("evaluate", file, str(store), *inputs)

    before = folder_of(folder)
    shutil.move(folder, tmp_path / "there")
    assert folder_of(str(tmp_path / "there")) == before
    (tmp_path / "there/model.safetensors").write_text("changed")
    assert folder_of(str(tmp_path / "there")) != before


def test_a_measurement_depends_on_the_content_of_its_embedding_model_not_its_path(
    tmp_path, monkeypatch
):
    folder = model(tmp_path / "here")
    pinned = records.pinned(tmp_path / "store")

    def folder_of(path, **nightly):
        file = recipe(
            tmp_path,
            collect={"domain": "shell"},
            nightly={"embedding_model": path, **nightly},
        )
        return folder_for("measure", file, str(tmp_path / "store"), pinned.digest, "monday")

    monkeypatch.delenv("AGENTWORLD_SERVICE_URL", raising=False)
    before = folder_of(folder)
    shutil.move(folder, tmp_path / "there")
    assert folder_of(str(tmp_path / "there")) == before
    (tmp_path / "there/model.safetensors").write_text("changed")
    assert folder_of(str(tmp_path / "there")) != before
    with pytest.raises(InputError, match=f"there is no folder {folder}"):
        folder_of(folder)
    with pytest.raises(InputError, match="there is no metric 'bleu'"):
        folder_of(None, metrics=["bleu"])


def test_new_model_sizes_are_ignored_when_the_recipe_has_a_base(tmp_path, folder_of_stage):
    base = model(tmp_path / "here")
    file = recipe(tmp_path, model={"base": base, "num_layers": 7})
    data = records.prepared(tmp_path / "store", "a")
    assert folder_for("cpt", file, str(tmp_path / "store"), data) == folder_of_stage("cpt", base)


def test_data_with_another_domain_has_another_training_folder(tmp_path):
    data = records.prepared(tmp_path, "data")
    before = folder_for("cpt", "demo", str(tmp_path), data)
    dataset = records.dataset().model_copy(update={"domains": {"shell": 9, "text": 1}})
    dataset.write(Path(data) / "dataset.json")
    assert folder_for("cpt", "demo", str(tmp_path), data) != before


def test_the_error_for_a_missing_model_folder_names_the_folder(folder_of_stage, tmp_path):
    with pytest.raises(InputError, match=f"there is no folder {tmp_path}/gone"):
        folder_of_stage("cpt", str(tmp_path / "gone"))


def test_an_embedding_model_with_weight_zero_is_not_read(tmp_path):
    spec = load_recipe(Path(recipe(tmp_path, rl=reward("/gone", weight=0))))
    assert own_inputs("rl", spec, tmp_path) == {}


def test_a_base_that_changes_during_training_is_refused():
    base, other = records.digest("base"), records.digest("another")
    checkpoint = records.checkpoint("cpt", parents=[base], data=records.digest("data"))
    check_unchanged(checkpoint, {"base": base})
    with pytest.raises(InputError, match="the folder of base changed while cpt read it"):
        check_unchanged(checkpoint, {"base": other})

"""The start of a stage: its parent, the recipe's base, or random weights."""

from pathlib import Path

import pytest
import yaml

import make.registry
from agentworld.errors import InputError
from agentworld.lineage.base import WorldModel
from agentworld.recipes import Recipe
from agentworld.recipes.train import AgentRecipe, ModelRecipe, NextTokenRecipe, WorldRlRecipe
from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.runner.task import Task
from agentworld.steps import imitate, rl
from agentworld.steps.run import run_by_name
from agentworld.steps.start import check_rates, start_of
from agentworld.train.parent import Parent
from make import records, training


def task(base=None, chat_template=None, **folders):
    recipe = Recipe(name="mine", model=ModelRecipe(base=base, chat_template=chat_template))
    return Task(recipe, Path("store"), folders, {}, {})


@pytest.fixture
def base(tmp_path) -> Path:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/config.json").write_text("{}")
    return tmp_path / "base"


def test_a_parent_takes_precedence_over_a_base(base, tmp_path):
    parent = records.trained_step(tmp_path, "cpt")
    start = start_of(task(base=str(base), parent=parent))
    assert start.parent() == Parent(parent / "model", checkpoint=records.checkpoint("cpt"))
    assert (start.inputs, start.from_scratch) == ({}, False)


def test_a_base_is_identified_by_its_digest(base):
    start = start_of(task(base=str(base)))
    assert start.parent() == Parent(base)
    assert start.inputs == {"base": ArtifactManifest.of(base).digest}


def test_a_base_trained_from_scratch_here_is_marked_as_from_scratch(base):
    artifact = ArtifactManifest.of(base).digest
    checkpoint = records.checkpoint("cpt", artifact=artifact, from_scratch=True)
    checkpoint.write(base.with_name("checkpoint.json"))
    start = start_of(task(base=str(base)))
    assert start.from_scratch
    assert start.parent().from_scratch
    assert start.inputs == {"base": artifact}


def test_a_chat_template_is_identified_by_its_text_inline_or_in_a_file(base, tmp_path):
    text = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (tmp_path / "own.jinja").write_text(text)
    starts = [start_of(task(str(base), source)) for source in (text, str(tmp_path / "own.jinja"))]
    assert starts[0].inputs == starts[1].inputs
    assert starts[0].inputs["chat_template"] == digest_bytes(text.encode())
    assert {start.parent().chat_template for start in starts} == {text}


def test_the_error_for_a_missing_chat_template_file_names_the_file(base):
    with pytest.raises(InputError, match=r"a readable file: 'gone\.jinja'; give a"):
        start_of(task(str(base), "gone.jinja"))


def test_a_chat_template_without_a_base_is_refused():
    with pytest.raises(ValueError, match="chat_template is read with a base alone"):
        task(chat_template="{{ messages }}")


PARTS = {
    "cpt": NextTokenRecipe(stage="cpt"),
    "rl": WorldRlRecipe(),
    "agent.imitation": AgentRecipe().imitation,
    "agent.rl": AgentRecipe().rl,
}


@pytest.mark.parametrize("rates", [{}, {"learning_rate": 9e-5}])
@pytest.mark.parametrize("part", PARTS)
def test_a_model_from_scratch_refuses_learning_rates_of_pretrained_models(part, rates):
    recipe = PARTS[part].model_copy(update=rates)
    with pytest.raises(InputError, match=rf"^{part}\.learning_rate .* is for a pretrained model"):
        check_rates(part, recipe, from_scratch=True)
    check_rates(part, recipe, from_scratch=False)
    check_rates(part, recipe.model_copy(update={"learning_rate": 1e-4}), from_scratch=True)


def test_the_muon_learning_rate_is_checked_too():
    check_rates("cpt", NextTokenRecipe(stage="cpt", muon_learning_rate=0.02), from_scratch=True)
    with pytest.raises(InputError, match=r"^cpt\.learning_rate"):
        check_rates("cpt", NextTokenRecipe(stage="cpt", muon_learning_rate=9e-5), from_scratch=True)


def test_without_parent_and_base_a_new_model_is_created():
    assert start_of(task()) == (None, {}, True)


@pytest.mark.compute
def test_later_stages_refuse_pretrained_rates_for_a_model_from_scratch(tmp_path):
    recipe, *arguments = training.training(tmp_path / "store", cpt={"epochs": 1}, sft={"epochs": 1})
    stages = [run_by_name("cpt", recipe, *arguments)]
    stages.append(run_by_name("sft", recipe, *arguments, stages[0]))
    settings = yaml.safe_load(Path(recipe).read_text())
    Path(recipe).write_text(yaml.safe_dump({**settings, "sft": {"stage": "sft"}, "rl": {}}))
    for stage, parent in zip(("sft", "rl"), stages, strict=True):
        with pytest.raises(InputError, match=rf"^{stage}\.learning_rate 1e-0\d is for"):
            run_by_name(stage, recipe, *arguments, parent)


@pytest.mark.waits
@pytest.mark.parametrize("part", ["imitation", "rl"])
def test_an_agent_refuses_pretrained_rates_for_a_world_model_from_scratch(
    tmp_path, monkeypatch, part
):

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    pinned = records.pinned(tmp_path)
    last = records.checkpoint("rl", artifact=pinned.manifest.artifact, from_scratch=True)
    world_model = WorldModel(stages=(last,), report=records.digest("report"))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    make.registry.registry(tmp_path).register_world_model("shell", world_model, tmp_path / "model")
    fast = AgentRecipe().model_dump()
    fast["imitation"]["learning_rate"] = fast["rl"]["learning_rate"] = 1e-3
    slow = {**fast, part: AgentRecipe().model_dump()[part]}
    arguments = tmp_path, {"collected": tmp_path}, {}, {"simulator": pinned.digest}
    imitate.plan(Task(Recipe(name="mine", agent=fast), *arguments))
    with pytest.raises(InputError, match=rf"^agent\.{part}\.learning_rate"):
        imitate.plan(Task(Recipe(name="mine", agent=slow), *arguments))


def test_rl_without_a_model_to_start_from_is_refused(tmp_path):
    with pytest.raises(InputError, match="no model to start from; give --parent, or name model"):
        rl.plan(task(data=tmp_path))

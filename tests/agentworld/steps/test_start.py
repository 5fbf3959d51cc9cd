"""Where a stage starts: at its parent, at the recipe's base, or at nothing."""

from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.recipes import Recipe
from agentworld.recipes.train import ModelRecipe, NextTokenRecipe
from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.runner.task import Task
from agentworld.steps import rl
from agentworld.steps.start import check_rates, start_of


def task(base=None, chat_template=None, **folders):
    recipe = Recipe(name="mine", model=ModelRecipe(base=base, chat_template=chat_template))
    return Task(recipe, Path("store"), folders, {}, {})


@pytest.fixture
def base(tmp_path) -> Path:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/config.json").write_text("{}")
    return tmp_path / "base"


def test_a_parent_goes_before_a_base(base, tmp_path):
    start = start_of(task(base=str(base), parent=tmp_path / "cpt"))
    assert start.parent() == (tmp_path / "cpt/model", None, None)
    assert start.inputs == {}


def test_a_base_counts_by_its_content(base):
    start = start_of(task(base=str(base)))
    assert start.parent() == (base, None, None)
    assert start.inputs == {"base": ArtifactManifest.of(base).digest}


def test_a_chat_template_counts_by_its_text_wherever_that_is(base, tmp_path):
    text = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (tmp_path / "own.jinja").write_text(text)
    starts = [start_of(task(str(base), given)) for given in (text, str(tmp_path / "own.jinja"))]
    assert starts[0].inputs == starts[1].inputs
    assert starts[0].inputs["chat_template"] == digest_bytes(text.encode())
    assert {start.parent().chat_template for start in starts} == {text}


def test_a_chat_template_that_is_no_file_is_named(base):
    with pytest.raises(InputError, match=r"no file that can be read: 'gone\.jinja'; give a"):
        start_of(task(str(base), "gone.jinja"))


def test_a_chat_template_without_a_base_is_refused():
    with pytest.raises(ValueError, match="chat_template is read with a base alone"):
        task(chat_template="{{ messages }}")


@pytest.mark.parametrize("rates", [{}, {"learning_rate": 9e-5}])
def test_a_new_model_is_not_trained_by_the_rates_of_a_pretrained_one(base, rates):
    recipe = NextTokenRecipe(stage="cpt", **rates)
    with pytest.raises(InputError, match=r"cpt makes a new model here, which learns nothing by a"):
        check_rates(start_of(task()), recipe)
    check_rates(start_of(task(str(base))), recipe)
    check_rates(start_of(task()), recipe.model_copy(update={"muon_learning_rate": 0.02}))


def test_without_either_a_new_model_is_made():
    assert start_of(task()) == (None, {})


def test_rl_has_to_start_somewhere(tmp_path):
    with pytest.raises(InputError, match="no model to start from; give --parent, or name model"):
        rl.plan(task(data=tmp_path))

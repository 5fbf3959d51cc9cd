"""Weights from elsewhere: what is taken, what is refused, and when."""

import json
import shutil

import pytest

from agentworld.domains.terminal.prompts import prompt_parts
from agentworld.errors import InputError
from agentworld.recipes import Recipe
from agentworld.records.progress import no_tick
from agentworld.rendering.messages import system_text
from agentworld.steps.import_world import import_world
from agentworld.steps.pinning import with_world
from agentworld.storage.simulators import SimulatorStore

SHELL = "You simulate a Linux shell."


def recipe(kind="transformers-serve", **sampling):
    drawn = {"max_tokens": 40, **sampling}
    return Recipe(name="r", engine={"kind": kind}, simulate={"sampling": drawn})


def imported(model, store, chosen=None):
    return import_world(chosen or recipe(), store, model, no_tick)


@pytest.fixture
def model(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "elsewhere")


def test_weights_from_elsewhere_become_a_simulator_that_nobody_validated(model, tmp_path):
    simulator = imported(model, tmp_path / "store")
    manifest = simulator.manifest
    assert set(manifest.files) == {path.name for path in model.iterdir()}
    assert manifest.context_tokens == 1024
    assert manifest.system_prompt == system_text(prompt_parts(""))
    assert simulator.reports == []
    simulator.verify()


def test_the_same_weights_imported_twice_are_the_same_simulator(model, tmp_path):
    first = imported(model, tmp_path / "store")
    assert imported(model, tmp_path / "store") == first
    assert SimulatorStore(tmp_path / "store").all() == [first]


def test_an_imported_world_is_drawn_as_its_maker_says_and_told_what_it_is(model, tmp_path):
    defaults = {"do_sample": True, "temperature": 0.6, "top_k": 20}
    (model / "generation_config.json").write_text(json.dumps(defaults))
    chosen = with_world(recipe(), system_prompt=SHELL, domains=["terminal", "swe"])
    manifest = imported(model, tmp_path / "store", chosen).manifest
    assert (manifest.sampling.temperature, manifest.sampling.top_k) == (0.6, 20)
    assert (manifest.system_prompt, manifest.domains) == (SHELL, ("terminal", "swe"))


def add_adapter(model):
    (model / "adapter").mkdir()
    (model / "adapter" / "adapter_config.json").write_text('{"r": 8}')


WRONG = {
    "code": (lambda model: (model / "run.py").touch(), r"run\.py may carry code"),
    "no template": (lambda model: (model / "chat_template.jinja").unlink(), "no chat template"),
    "a template that reaches for Python": (
        lambda model: (model / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}"),
        "access to attribute '__class__' of 'str' object is unsafe",
    ),
    "an adapter that the engine leaves out": (add_adapter, "merge it into the weights, or set"),
}


@pytest.mark.parametrize(("spoil", "words"), WRONG.values(), ids=WRONG)
def test_a_folder_that_cannot_be_served_is_refused_before_it_is_copied(
    model, tmp_path, spoil, words
):
    spoil(model)
    with pytest.raises(InputError, match=words):
        imported(model, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_an_answer_that_would_fill_the_context_is_refused(model, tmp_path):
    with pytest.raises(InputError, match=r"1024 tokens leaves no room for a prompt in a context"):
        imported(model, tmp_path / "store", recipe(max_tokens=1024))
    assert not (tmp_path / "store").exists()


def test_a_domain_has_a_name():
    with pytest.raises(InputError, match=r"cannot be pinned so: domains\.0"):
        with_world(recipe(), domains=["Web Shop"])


@pytest.mark.slow
def test_seeds_are_promised_where_the_engine_was_seen_to_keep_them(model, tmp_path):
    chosen = recipe("vllm", temperature=1.0, seed_policy="seeded")
    manifest = imported(model, tmp_path / "store", chosen).manifest
    assert manifest.sampling.seed_policy == "seeded"
    assert (tmp_path / "store" / "logs" / "seeds.log").stat().st_size > 0

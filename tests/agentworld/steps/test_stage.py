"""A stage's folder is known before it is trained: the step, run afterwards, comes out there."""

from importlib import import_module

import pytest

import make
from agentworld.errors import InputError
from agentworld.steps.stage import STAGES, stage_folder


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_comes_out_in_the_folder_that_was_told(tmp_path, stage):
    inputs = [str(make.finished_step(tmp_path, "prepare", make.digest("data")))]
    if stage != "cpt":
        inputs.append(str(make.finished_step(tmp_path, "before", make.digest("parent"))))
    folder = stage_folder(stage, "demo", str(tmp_path), *inputs)
    make.receipt(stage, make.digest("made")).write(folder / "receipt.json")  # trained elsewhere
    step = getattr(import_module(f"agentworld.steps.{stage}"), stage)
    assert step("demo", str(tmp_path), *inputs) == str(folder)


def test_another_recipe_and_another_input_have_another_folder(tmp_path):
    data = [str(make.finished_step(tmp_path, "prepare", make.digest(name))) for name in "ab"]
    told = [("demo", data[0]), ("demo", data[1]), ("smoke", data[0])]
    assert len({stage_folder("cpt", recipe, str(tmp_path), each) for recipe, each in told}) == 3


def test_an_input_that_is_not_finished_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"receipt\.json is missing"):
        stage_folder("cpt", "demo", str(tmp_path), str(tmp_path / "data"))

from pathlib import Path

import pytest

from agentworld.runner.code import code_digest, commit, module_digest
from agentworld.steps.table import STEPS


@pytest.mark.compute
def test_every_step_has_code_of_its_own():
    assert len({code_digest(step) for step in STEPS}) == len(STEPS)


def test_a_step_reaches_the_code_that_it_calls_and_the_texts_beside_it():
    from agentworld.runner import code

    reached: dict[str, Path | None] = {}
    code._reach("agentworld.steps.prepare", reached, set())
    names = {path.relative_to(code._PACKAGE).as_posix() for path in reached.values() if path}
    assert {"steps/prepare.py", "records/sample.py", "errors.py"} <= names
    assert "steps/cpt.py" not in names


def test_the_commit_is_said():
    assert commit()


def test_a_module_that_is_loaded_by_its_name_has_a_digest_over_what_it_reaches():
    from agentworld.runner import code

    package = "agentworld.data.importers"
    forms = {form: module_digest(f"{package}.{form}") for form in ("atif", "messages", "steps")}
    assert len({*forms.values()}) == 3
    reached = {path.name for path in code._reached_from(f"{package}.messages")}
    assert {"messages.py", "observations.py", "events.py"} <= reached
    collect = code._reached_from("agentworld.steps.collect")
    assert "messages.py" not in {path.name for path in collect if path.parent.name == "importers"}

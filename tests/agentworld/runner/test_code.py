from pathlib import Path

import pytest

from agentworld.runner.code import code_digest, commit
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

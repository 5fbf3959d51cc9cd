from pathlib import Path

import pytest

from agentworld.runner.code import code_digest, commit, module_digest
from agentworld.steps.table import STEPS


@pytest.mark.compute
def test_every_step_has_a_different_code_digest():
    assert len({code_digest(step) for step in STEPS}) == len(STEPS)


def test_the_code_of_a_step_includes_its_imports_and_excludes_other_steps():
    from agentworld.runner import code

    modules: dict[str, Path | None] = {}
    code._reach("agentworld.steps.prepare", modules, set())
    names = {path.relative_to(code._PACKAGE).as_posix() for path in modules.values() if path}
    assert {"steps/prepare.py", "records/sample.py", "errors.py"} <= names
    assert "steps/cpt.py" not in names


def test_the_commit_is_not_empty():
    assert commit()


def test_an_importers_digest_covers_its_imports_and_is_not_part_of_collect():
    from agentworld.runner import code

    package = "agentworld.data.importers"
    digests = {form: module_digest(f"{package}.{form}") for form in ("atif", "messages", "steps")}
    assert len({*digests.values()}) == 3
    names = {path.name for path in code._reached_from(f"{package}.messages")}
    assert {"messages.py", "observations.py", "events.py"} <= names
    paths = code._reached_from("agentworld.steps.collect")
    assert "messages.py" not in {path.name for path in paths if path.parent.name == "importers"}

import ast
from pathlib import Path

import pytest

from agentworld.runner.code import code_digest, commit
from agentworld.steps.table import MAIN_JOB


@pytest.mark.compute
def test_every_step_has_code_of_its_own():
    assert len({code_digest(step) for step in MAIN_JOB}) == len(MAIN_JOB)


def test_a_step_reaches_the_code_that_it_calls_and_the_texts_beside_it():
    from agentworld.runner import code

    reached = code._reached_from("agentworld.steps.prepare")
    names = {path.relative_to(code._PACKAGE).as_posix() for path in reached}
    assert {"steps/prepare.py", "records/sample.py", "errors.py"} <= names
    assert "steps/cpt.py" not in names


def test_every_step_is_a_function_of_strings_that_returns_a_string_or_a_verdict():
    steps = Path(__file__).parents[3] / "platform/agentworld/steps"
    for step in MAIN_JOB:
        tree = ast.parse((steps / f"{step}.py").read_text())
        (function,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == step]
        kinds = [*(argument.annotation for argument in function.args.args), function.returns]
        returns = "Verdict" if step == "gate" else "str"
        assert [ast.unparse(kind) for kind in kinds if kind] == [
            *["str"] * len(function.args.args),
            returns,
        ]


def test_the_commit_is_said():
    assert commit()

"""A new step is an entry in the table and a module: everything else follows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentworld.runner.code import code_digest
from agentworld.steps.table import STEPS
from make import records

pytestmark = pytest.mark.compute

ROOT = Path(__file__).parents[2]
END = ")\n\nSTEPS = "
ENTRY = """    Step(
        "tally",
        does="Count the words of a text, beside a data set.",
        makes="the text",
        recipe=lambda recipe: [recipe.prepare],
        inputs=(
            Input("data", "prepare", reads_files=True),
            Input("text", help="Any words.", default="none"),
        ),
        kind="live",
        command="data tally",
    ),
"""
MODULE = '''"""Counts words."""

from pathlib import Path

from agentworld.records.base import Digest, digest_bytes
from agentworld.records.progress import OnProgress
from agentworld.runner.task import Plan, Task


def plan(task: Task) -> Plan:
    """Writes how many words a text has."""
    text = task.texts["text"]

    def work(out: Path, _: OnProgress) -> Digest:
        (out / "tally").write_text(f"{task.folders['data'].name} {len(text.split())}")
        return digest_bytes(text.encode())

    return Plan(work, {"text": digest_bytes(text.encode())})
'''
PROGRAM = """
import json
import sys
from kfp import dsl, local
from agentworld.runner.code import code_digest
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import step_adder

recipe, store, data = sys.argv[1:]
placement = Placement.model_validate({"image": "mine:1", "steps": {"tally": {"queue": "here"}}})

@dsl.pipeline(name="one-step")
def pipeline(recipe: str, store: str, data: str):
    step_adder(None)("tally", recipe=recipe, store=store, data=data, text="one two three")

local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=f"{store}/kfp")
pipeline(recipe=recipe, store=store, data=data)
digests = {step: code_digest(step) for step in ("tally", "prepare", "rl")}
print(json.dumps({"place": placement.of("tally").queue, "code": digests}))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a copy of the packages with one more entry and module."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("platform", "pipelines"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    steps = root / "platform/agentworld/steps"
    table = (steps / "table.py").read_text()
    assert table.count(END) == 1
    (steps / "table.py").write_text(table.replace(END, ENTRY + END))
    (steps / "tally.py").write_text(MODULE)
    folders = [root / "platform", root / "pipelines", *sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return records.finished_step(tmp_path, "prepare", records.digest("data"))


def output(environment: dict[str, str], *arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_new_step_is_a_command_with_its_inputs_as_options(environment, data, tmp_path):
    command = ("-m", "agentworld_cli.main", "data", "tally")
    help_text = output(environment, *command, "--help")
    assert "Count the words of a text, beside a data set." in help_text
    assert "The folder of a finished `data prepare`." in help_text
    answer = output(environment, *command, "--data", data, "--store", tmp_path, "--json")
    folder = Path(json.loads(answer)["folder"])
    assert folder.parent == tmp_path / "steps/tally"
    assert (folder / "tally").read_text() == f"{data.name} 1"
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["inputs"].keys() == {"data", "text"}


def test_a_new_step_is_a_component_and_changes_no_code_digest_of_other_steps(
    environment, data, tmp_path
):
    text = output(environment, "-c", PROGRAM, "demo", tmp_path, data)
    answer = json.loads(text.splitlines()[-1])
    [tally] = tmp_path.glob("steps/tally/*/tally")
    assert tally.read_text() == f"{data.name} 3"
    assert answer["place"] == "here"
    assert {step: answer["code"][step] for step in ("prepare", "rl")} == {
        step: code_digest(step) for step in ("prepare", "rl")
    }
    assert "tally" not in STEPS

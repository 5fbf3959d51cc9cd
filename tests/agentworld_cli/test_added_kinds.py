"""Another package's additions work from collect to serve, without changes to our code.

Both packages are installed from wheels, as their users have them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworld.recipes import recipe_path
from waiting import JOB_DEADLINE

pytestmark = pytest.mark.compute

_ROOT = Path(__file__).parents[2]
_ADDED_PACKAGE = _ROOT / "tests/peers/counter_world"
_SCRIPT = _ROOT / "tests/peers/added_kinds.py"
_LOG = "add 3 -> now 3\nshow -> now 3\n\nshow -> now 0\nadd 1 -> now 1\n"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("added")
    packages = folder / "packages"
    for source in (_ROOT, _ADDED_PACKAGE):
        _install(source, packages)
    (folder / "log.txt").write_text(_LOG)
    import_recipe = _recipe(folder / "imports.yaml", trajectories=str(folder / "log.txt"))
    explore_recipe = _recipe(folder / "explores.yaml")
    process = subprocess.run(
        [sys.executable, str(_SCRIPT), explore_recipe, str(folder / "store"), import_recipe],
        env={
            **os.environ,
            "PYTHONPATH": str(packages),
            "AGENTWORLD_PROTOCOLS": '["http", "line"]',
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    assert Path(result["installed"]).is_relative_to(packages)
    return result


def _install(source: Path, target: Path) -> None:
    command = "-m pip install --quiet --no-deps --no-build-isolation --no-index --target"
    subprocess.run(
        [sys.executable, *command.split(), str(target), str(source)],
        check=True,
        timeout=JOB_DEADLINE,
    )


def _recipe(path: Path, **collect_fields: str) -> str:
    recipe = yaml.safe_load(recipe_path("smoke").read_text())
    recipe["name"] = "counter"
    recipe["collect"] = {"domain": "counter", "num_transitions": 600, "num_held_out_episodes": 10}
    recipe["collect"] |= {"num_workers": 1, "format": "counter-log", **collect_fields}
    recipe["evaluate"]["metrics"] = ["rule", "near"]
    recipe["rl"] |= {"algorithm": "plain", "num_steps": 1, "prompts_per_step": 1}
    recipe["cpt"]["epochs"] = recipe["sft"]["epochs"] = 2
    path.write_text(yaml.safe_dump(recipe))
    return str(path)


def test_an_added_importer_reads_its_logs(outcome):
    assert outcome["imported"] == 2


def test_an_added_domain_is_explored_trained_and_pinned(outcome):
    assert outcome["domains"] == ["counter"]
    action_tags, change_tags = {"add", "show", "output"}, {"1 field changed", "no field changed"}
    assert set(outcome["tags"]) == action_tags | change_tags


def test_an_added_metric_and_verifier_are_in_the_report(outcome):
    assert outcome["metrics"] == ["near", "rule"]


def test_an_added_protocol_answers_from_the_simulator_and_its_steps_are_counted(outcome):
    assert outcome["answer"]
    assert outcome["counted"]


def test_a_statement_of_an_added_kind_is_compared_with_its_copy_and_exported(outcome):
    problem = "the counter-reading NAME of c differs in the evidence mirror"
    assert outcome["statement"] == {"honest": [], "exchanged": [problem], "exported": 2}

"""A team's first path: logs of a bash tool and a checkpoint in, a pinned simulator out."""

import json
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from typer.testing import CliRunner

from agentworld.records.dataset import DataSet
from agentworld.records.report import WorldModelReport
from agentworld.runner.folders import checkpoint_of
from agentworld.storage.pools import MANIFEST
from agentworld.storage.simulators import PinnedSimulator
from agentworld_cli.main import app

pytestmark = [pytest.mark.compute, pytest.mark.ordered]

NUM_LOGS = 60
WORDS = "amber birch cedar delta ember fjord grove haven".split()


class Place(NamedTuple):
    """Where the path is walked."""

    logs: Path
    recipe: Path
    store: Path

    def run(self, *words: str) -> str:
        """A command's last line of output, with this recipe and this store."""
        options = ["--store", str(self.store)]
        if words[:2] != ("data", "import") and words[1] not in ("list", "show"):
            options += ["--recipe", str(self.recipe)]
        result = CliRunner().invoke(app, [*words, *options])
        assert result.exit_code == 0, result.output or result.exception
        return result.stdout.strip()


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_model) -> Place:
    folder = tmp_path_factory.mktemp("path")
    logs = folder / "logs.jsonl"
    logs.write_text("".join(json.dumps(_chat(number)) + "\n" for number in range(NUM_LOGS)))
    stage = {"epochs": 1, "tokens_per_batch": 2048, "learning_rate": 1e-4}
    recipe = {
        "name": "mine",
        "model": {"base": str(tiny_model)},
        "prepare": {"cpt_share": 0.3, "sft_share": 0.6},
        "sft": {"stage": "sft", "muon_learning_rate": None, **stage},
        "evaluate": {"num_episodes": 4, "num_free_running": 1, "num_resamples": 200},
        "simulate": {"sampling": {"max_tokens": 24}},
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(recipe))
    return Place(logs, folder / "mine.yaml", folder / "store")


def _chat(number: int) -> dict[str, object]:
    """A session of a tool that counts, with what an agent and a user write around it."""
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You have a database."},
        {"role": "user", "content": "Count the words."},
    ]
    with sqlite3.connect(":memory:") as database:
        for place, word in enumerate(WORDS[number % 5 : number % 5 + 3]):
            query = f"select length('{word}') + {number}"
            arguments = json.dumps({"query": query})
            call = {"id": f"c{place}", "function": {"name": "sql", "arguments": arguments}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            (row,) = database.execute(query).fetchall()
            messages.append({"role": "tool", "tool_call_id": f"c{place}", "content": f"{row[0]}\n"})
    return {"task_id": f"task-{number // 2}", "messages": messages}


@pytest.fixture(scope="module")
def folders() -> dict[str, str]:
    return {}


def test_logs_are_imported(place, folders):
    lines = place.run("data", "import", str(place.logs)).splitlines()
    assert lines[1] == "  form messages, domain text"
    assert lines[-1].startswith("next: agentworld data prepare --collected ")
    folders["collected"] = lines[0]


def test_they_become_a_data_set(place, folders):
    folders["data"] = place.run("data", "prepare", "--collected", folders["collected"])
    data = DataSet.read(Path(folders["data"]) / MANIFEST)
    assert data.domains == {"text": NUM_LOGS}


def test_sft_begins_at_the_checkpoint_of_the_recipe(place, folders):
    folders["sft"] = place.run("train", "sft", "--data", folders["data"])
    checkpoint = checkpoint_of(Path(folders["sft"]))
    (base,) = checkpoint.parents
    assert base.startswith("sha256:")
    assert (checkpoint.stage, checkpoint.domains) == ("sft", ("text",))


def test_one_stage_alone_is_evaluated_beside_the_baselines(place, folders):
    words = ["--data", folders["data"], "--sft", folders["sft"]]
    folders["report"] = place.run("evaluate", "stages", *words)
    report = WorldModelReport.read(Path(folders["report"]) / "report.json")
    assert report.stages.keys() == {"sft"}
    assert report.baselines.keys() == {"copy", "repeat", "frequent", "nearest"}
    assert report.stages["sft"].leads.keys() == report.baselines.keys()
    assert report.rl_gain is None
    assert report.lead
    assert report.stages["sft"].free_running


def test_it_is_registered_listed_and_shown(place, folders):
    words = ["--report", folders["report"], "--sft", folders["sft"]]
    folders["version"] = place.run("world-model", "register", *words)
    (line,) = place.run("world-model", "list").splitlines()
    artifact = checkpoint_of(Path(folders["sft"])).artifact
    assert line.split()[0] == "agentworld-text@1"
    assert line.endswith(artifact)
    first, stage, *_ = place.run("world-model", "show", "agentworld-text@1").splitlines()
    assert first == "agentworld-text@1, domain text"
    assert stage.startswith(f"  sft  {artifact[:19]}  from sha256:")
    listed = json.loads(place.run("world-model", "list", "--json"))
    assert [each["tags"]["artifact"] for each in listed] == [artifact]
    shown = json.loads(place.run("world-model", "show", "agentworld-text@1", "--json"))
    assert [each["stage"] for each in shown["stages"]] == ["sft"]


def test_it_is_pinned_as_a_simulator(place, folders):
    pinned = json.loads(place.run("simulator", "pin", folders["version"], "--json"))
    again = json.loads(place.run("simulator", "pin", "agentworld-text@1", "--json"))
    assert pinned == again
    simulator = PinnedSimulator.read(Path(pinned["folder"]))
    assert (simulator.digest, *simulator.manifest.domains) == (pinned["simulator"], "text")
    assert pinned["answers"]["num"] > 0
    assert pinned["validated"] == (pinned["problems"] == [])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("evaluate", "stages", "--data", "DATA"), "no stage is given"),
        (("world-model", "register", "--report", "REPORT"), "no stage is given"),
    ],
)
def test_a_step_without_a_stage_is_refused(place, folders, words, problem):
    known = {"DATA": folders["data"], "REPORT": folders["report"]}
    options = ["--store", str(place.store), "--recipe", str(place.recipe)]
    result = CliRunner().invoke(app, [*(known.get(word, word) for word in words), *options])
    assert result.exit_code == 1
    assert problem in str(result.exception)

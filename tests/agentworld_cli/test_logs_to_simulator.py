"""A team's first use: from logs and a checkpoint to a pinned simulator, as in the guide."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from agentworld.engine.process import free_port
from agentworld.records.dataset import DataSet
from agentworld.records.report import WorldModelReport
from agentworld.runner.folders import checkpoint_of
from agentworld.storage.pools import MANIFEST
from agentworld.storage.simulators import PinnedSimulator
from agentworld_cli.main import app
from make import guide, pages, shop

pytestmark = [pytest.mark.compute, pytest.mark.ordered]

GUIDE = Path(__file__).parents[2] / "docs/guides/from-logs.md"
NUM_LOGS = int(os.environ.get("NUM_LOGS", "600"))
"""`make test-long` takes 2,000."""


class Walkthrough(NamedTuple):
    """The results of the guide's commands."""

    folder: Path
    shell: guide.Shell

    def value(self, name: str) -> Path:
        """The folder that a variable of the guide names."""
        return self.folder / self.shell.values[name]


def lay_out(folder: Path, num_logs: int) -> list[str]:
    """Writes the guide's files, the logs and the checkpoint; returns the guide's commands."""
    text = GUIDE.read_text().replace("8123", str(free_port()))
    (folder / "mine.yaml").write_text(guide.blocks(text, "yaml")[0])
    (folder / "play.py").write_text(guide.blocks(text, "python")[0])
    (folder / "logs.jsonl").write_text("".join(shop.logs(num_logs)))
    shop.checkpoint(folder / "base")
    shop.checkpoint(folder / "my-agent")
    return [line for block in guide.blocks(text, "sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def walkthrough(tmp_path_factory):
    folder = tmp_path_factory.mktemp("path")
    lines = lay_out(folder, NUM_LOGS)
    with pytest.MonkeyPatch.context() as patch, guide.shell() as shell:
        patch.chdir(folder)
        for line in lines:
            shell.run(line)
        yield Walkthrough(folder, shell)


def test_logs_become_a_data_set(walkthrough):
    lines = walkthrough.shell.said["data import"].splitlines()
    assert lines[1] == "  format messages, domain text"
    assert lines[-1].startswith("next: agentworld data prepare --collected ")
    data = DataSet.read(walkthrough.value("data") / MANIFEST)
    assert data.domains == {"text": NUM_LOGS}


def test_the_training_prompt_contains_the_tool_schemas(walkthrough):
    from agentworld.rendering.messages import system_text
    from agentworld.storage.pools import read_dataset, read_pool

    folder = walkthrough.value("data")
    sample = next(read_pool(folder, read_dataset(folder), "sft"))
    schema = '"inputSchema":{"properties":{"items":{"type":"array"}},"type":"object"}'
    assert schema in system_text(sample.prompt)


def test_sft_starts_from_the_base_of_the_recipe(walkthrough):
    checkpoint = checkpoint_of(walkthrough.value("sft"))
    (base,) = checkpoint.parents
    assert base.startswith("sha256:")
    assert (checkpoint.stage, checkpoint.domains) == ("sft", ("text",))


def test_the_model_beats_the_lookup_baselines(walkthrough):
    report = WorldModelReport.read(walkthrough.value("report") / "report.json")
    assert report.stages.keys() == {"sft"}
    assert report.rl_gain is None
    assert report.lead
    assert report.lead.low > 0
    leads = report.stages["sft"].leads
    assert leads.keys() == report.baselines.keys() == {"copy", "repeat", "frequent", "nearest"}
    assert all(figures.metrics["token_f1"].low > 0 for figures in leads.values())
    assert report.stages["sft"].free_running


def test_the_world_model_is_registered_listed_and_shown(walkthrough, monkeypatch):
    monkeypatch.chdir(walkthrough.folder)
    assert walkthrough.shell.values["version"]
    result = CliRunner().invoke(app, ["world-model", "list", "--store", "my-store"])
    artifact = checkpoint_of(walkthrough.value("sft")).artifact
    (line,) = result.stdout.splitlines()
    assert line.split()[0] == "agentworld-text@1"
    assert line.endswith(artifact)
    words = ["world-model", "show", "agentworld-text@1", "--store", "my-store"]
    first, stage, *_ = CliRunner().invoke(app, words).stdout.splitlines()
    assert first == "agentworld-text@1, domain text"
    assert stage.startswith(f"  sft  {artifact[:19]}  from sha256:")


def test_the_pinned_simulator_answers_like_the_recorded_world(walkthrough):
    simulator = PinnedSimulator.read(walkthrough.value("simulator"))
    assert [*simulator.manifest.domains] == ["text"]
    answers = (walkthrough.folder / "seen.txt").read_text()
    items = ["bolt", "gear", "lamp"], ["rope", "bell", "saw"]
    assert answers == "".join(shop.answer(order) + "\n" for order in items)


def test_the_agent_audit_contains_the_simulator_the_base_and_the_logs(walkthrough):
    chain = walkthrough.shell.said["audit agent"]
    simulator = PinnedSimulator.read(walkthrough.value("simulator"))
    (base,) = checkpoint_of(walkthrough.value("sft")).parents
    assert f"run {walkthrough.shell.values['run']}: 1 episode, 2 steps served" in chain
    assert f"simulator {simulator.digest}" in chain
    assert f"base {base}" in chain
    assert f"data {checkpoint_of(walkthrough.value('sft')).data}" in chain
    assert f"{NUM_LOGS:,} trajectories of text, imported from messages, licence " in chain
    assert "broken" not in chain


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("evaluate", "stages", "--data", "data"), "no stage is given"),
        (("world-model", "register", "--report", "report"), "no stage is given"),
    ],
)
def test_a_step_without_a_stage_is_refused(walkthrough, monkeypatch, words, problem):
    monkeypatch.chdir(walkthrough.folder)
    *command, name = words
    folder = str(walkthrough.value(name))
    options = ["--store", "my-store", "--recipe", "mine.yaml"]
    result = CliRunner().invoke(app, [*command, folder, *options])
    assert result.exit_code == 1
    assert problem in str(result.exception)


@pytest.mark.parametrize("page", pages.params("my-store"))
def test_a_page_shows_what_its_commands_print(walkthrough, tmp_path, page):
    folder = shutil.copytree(walkthrough.folder, tmp_path / "folder")
    text = page.read_text()
    with pages.terminal(folder) as terminal:
        assert pages.forms(terminal.play(text, "my-store")) == pages.forms(text)

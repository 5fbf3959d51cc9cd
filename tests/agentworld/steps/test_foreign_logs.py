"""A hundred logs of a program without a domain: from a file to a simulator that responds."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import make.foreign_logs
from agentworld.operations.serving import pinned_engine, serve_client
from agentworld.recipes import recipe_path
from agentworld.records.episode import EpisodeOpening
from agentworld.records.report import WorldModelReport
from agentworld.records.run import RunOpening
from agentworld.runner.folders import STAGE_PAGE, checkpoint_of
from agentworld.steps.run import run_by_name
from agentworld.storage.pools import read_dataset, read_pool
from agentworld.storage.simulators import PinnedSimulator

pytestmark = pytest.mark.compute

NUM_LOGS = 100
REMOVED = (
    "short trajectory",
    "duplicate trajectory",
    "near-duplicate trajectory",
    "leak of held-out data",
    "no target left",
)


class Job(NamedTuple):
    """Folders of finished steps."""

    store: Path
    data: str
    rl: str
    report: str
    simulator: PinnedSimulator


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("foreign")
    make.foreign_logs.write_logs(folder / "logs.jsonl", NUM_LOGS)
    recipe, store = _recipe(folder), str(folder / "store")
    data = run_by_name("prepare", recipe, store, run_by_name("collect", recipe, store))
    stages = [run_by_name("cpt", recipe, store, data)]
    for step in ("sft", "rl"):
        stages.append(run_by_name(step, recipe, store, data, stages[-1]))
    report = run_by_name("evaluate", recipe, store, data, *stages)
    version = run_by_name("register", recipe, store, report, *stages)
    simulator = PinnedSimulator.read(Path(run_by_name("simulate", recipe, store, version)))
    return Job(Path(store), data, stages[-1], report, simulator)


def _recipe(folder: Path) -> str:
    """The smoke recipe, with a file of logs in place of explorers."""
    recipe = yaml.safe_load(recipe_path("smoke").read_text())
    recipe["name"] = "foreign"
    recipe["collect"] = {"trajectories": str(folder / "logs.jsonl"), "held_out_share": 0.3}
    recipe["prepare"] = {"cpt_share": 0.45, "sft_share": 0.35}
    recipe["rl"] |= {"num_steps": 1, "prompts_per_step": 2, "group_size": 4, "max_tokens": 24}
    recipe["cpt"]["epochs"] = recipe["sft"]["epochs"] = 2
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return str(path)


def test_every_log_is_in_a_pool_or_filtered_and_keeps_its_newlines(job):
    dataset = read_dataset(Path(job.data))
    samples = [
        sample for pool in dataset.pools for sample in read_pool(Path(job.data), dataset, pool)
    ]
    assert dataset.domains == {"text": len(samples)}
    assert len(samples) + sum(dataset.filtered.get(name, 0) for name in REMOVED) == NUM_LOGS
    observations = {turn.observation for sample in samples for turn in sample.turns}
    assert all(observation.endswith("\n") for observation in observations)


def test_checkpoint_and_simulator_record_their_domain_and_the_page_the_reward(job):
    assert checkpoint_of(Path(job.rl)).domains == ("text",)
    assert "Reward: reward" in (Path(job.rl) / STAGE_PAGE).read_text()
    assert job.simulator.manifest.domains.keys() == {"text"}


def test_the_report_has_no_rule_metric_for_a_domain_without_a_rule(job):
    report = WorldModelReport.read(Path(job.report) / "report.json")
    assert all("rule" not in score.metrics for score in report.stages.values())
    assert report.absent["rule"] == "no observation of these episodes has a value of it"
    assert all(score.by_tag.keys() == {"output"} for score in report.stages.values())


def test_the_simulator_answers_an_episode_that_starts_like_a_log(job):
    engine = pinned_engine(job.simulator.manifest)
    with serve_client(job.simulator.folder, engine, job.store, job.store / "logs") as client:
        result = asyncio.run(_first_step(client, job.simulator.digest))
    assert result.observation
    assert result.simulator == job.simulator.digest


async def _first_step(client, simulator):
    opening = RunOpening(agent="a", starting_weights=simulator, simulator=simulator)
    run = await client.open_run(opening)
    try:
        episode = await client.begin(EpisodeOpening(run=run.id, initial_state="no tables"))
        return await client.step(episode.episode, "create table t (name text, size int)")
    finally:
        await client.close()

"""Measures the served simulator every night, with fresh live episodes.

It is used through the service that AGENTWORLD_SERVICE_URL names, if set, as agents use it.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from agentworld.client.credential import ClientSettings
from agentworld.client.simulator import SimulatorClient
from agentworld.data.contents import Contents
from agentworld.data.explore import collected_domains, explore
from agentworld.data.filters import filter_trajectories
from agentworld.data.redaction import redact_trajectories
from agentworld.data.samples import make_sample
from agentworld.domains.live import check_available
from agentworld.errors import InputError
from agentworld.evaluate.absent import absent_metrics
from agentworld.evaluate.judging import Judge
from agentworld.evaluate.metrics import open_metrics
from agentworld.evaluate.served import ReplayedEpisode, free_running_score, latency, replay
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.serving import open_client
from agentworld.operations.simulators import attach, resolve_simulator
from agentworld.recipes import Recipe
from agentworld.recipes.environment import from_environment
from agentworld.records.base import Digest, digest_file, digest_json
from agentworld.records.garbled import redact
from agentworld.records.progress import OnProgress, share_of
from agentworld.records.report import ServedReport
from agentworld.records.run import AgentRun, RunOpening
from agentworld.records.sample import Sample
from agentworld.runner.folders import REPORT
from agentworld.runner.run_name import forget_run_name, has_run_name, run_name
from agentworld.runner.task import Plan, Task
from agentworld.steps.content import content_of
from agentworld.storage.folder import Disk
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.trajectories import read_trajectories, write_trajectories

LIVE = "live.jsonl"
_REPLAYED = "replayed"

# An episode's seed is ten million times a recipe's, and the largest exact number in JSON is 2**53.
_NUM_SEEDS = 2**29


class _Measurement(NamedTuple):
    """The simulator and the folder of a measurement."""

    job: str
    pinned: PinnedSimulator
    recipe: Recipe
    judge: Judge
    store: Path
    out: Path

    @property
    def live_digest(self) -> Digest:
        """The digest of the live episodes, in place of an agent's weights in the run's record."""
        return digest_file(self.out / LIVE)


def plan(task: Task) -> Plan:
    """Writes the report, and attaches it to the simulator. If `simulator` is empty, the recipe's is
    used: `nightly.simulator`, or the alias that it deploys to. Names are resolved here. Each `job`
    has its own live episodes; the same job again reuses its replayed episodes.

    At run time it raises EnvironmentUnavailable if no live environment can be opened, and
    SimulatorError if nothing was answered. Raises InputError for a missing metric or embedding
    model before any live episode.
    """
    settings, home, job = task.recipe, task.store, task.texts["job"]
    service = from_environment(ClientSettings).service_url
    name = task.texts["simulator"] or settings.nightly.simulator or settings.deploy.alias
    pinned = resolve_simulator(name, home)
    domains = collected_domains(settings.collect)
    if unknown := [name for name in domains if name not in pinned.manifest.domains]:
        raise InputError(
            f"{pinned.digest} has no domain {unknown[0]!r}, which the recipe's collect"
            " names; name another simulator"
        )

    nightly = settings.nightly
    open_metrics(nightly.metrics, None)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        if not (out / REPORT).is_file():
            judge = Judge(nightly.metrics, nightly.embedding_model)
            measurement = _Measurement(job, pinned, settings, judge, home, out)
            samples = _live(measurement)
            replays = _replay_all(measurement, samples, on_progress)
            _report(measurement, samples, replays).write(out / REPORT)
        report = ServedReport.read(out / REPORT)
        attach(pinned, report, home)
        return report.digest

    inputs = {
        "simulator": pinned.digest,
        "job": digest_json(job),
        "service": digest_json(redact(service) or "the step's own"),
        "ledger": ledger_digest(),
        **content_of("embedding_model", nightly.embedding_model),
    }
    return Plan(work, inputs, lambda: check_available(domains), domains=domains)


def _live(measurement: _Measurement) -> list[Sample]:
    """Held-out episodes in the form of a data set, with secrets replaced if the recipe does so."""
    path, recipe = measurement.out / LIVE, measurement.recipe
    if not path.is_file():
        seed = int(digest_json(measurement.job).removeprefix("sha256:"), 16) % _NUM_SEEDS
        explorers = recipe.collect.model_copy(update={"seed": seed})
        episodes = range(recipe.nightly.num_episodes)
        write_trajectories(path, asyncio.run(explore(explorers, episodes, held_out=True)))
    filtered = filter_trajectories(read_trajectories(path), recipe.prepare.min_turns, Counter())
    contents = Contents()
    passed = (item for item in filtered if contents.add(item.trajectory))
    trajectories = list(redact_trajectories(passed, Counter()) if recipe.prepare.redact else passed)
    if not trajectories:
        raise InputError(
            f"no live episode has the {recipe.prepare.min_turns} turns of prepare.min_turns; raise"
            " nightly.num_episodes"
        )
    return [
        make_sample(recipe.prepare, entry.trajectory, entry.digest, "held_out")
        for entry in trajectories
    ]


def _replay_all(
    measurement: _Measurement, samples: Sequence[Sample], on_progress: OnProgress
) -> list[ReplayedEpisode]:
    """Every replayed episode; the finished ones of a killed step are reused."""
    folder = measurement.out / _REPLAYED
    replays = {int(path.stem): ReplayedEpisode.read(path) for path in folder.glob("[0-9]*.json")}
    missing = {number: sample for number, sample in enumerate(samples) if number not in replays}
    if missing or has_run_name(measurement.out):
        on_remaining = share_of(on_progress, len(replays) / len(samples), 1)
        at_once = measurement.recipe.engine.concurrency
        with open_client(
            measurement.pinned.digest, at_once, measurement.store, measurement.out / "logs"
        ) as client:
            replays |= asyncio.run(_replay(measurement, client, missing, on_remaining))
    return [replays[number] for number in range(len(samples))]


async def _replay(
    measurement: _Measurement,
    client: SimulatorClient,
    samples: Mapping[int, Sample],
    on_progress: OnProgress,
) -> dict[int, ReplayedEpisode]:
    """Replays these episodes in one run; an episode without any verdict is tried again next time.

    The run's name is stored while the run is open.
    """
    folder = Disk(measurement.out / _REPLAYED)
    slots = asyncio.Semaphore(measurement.recipe.nightly.concurrency)
    done = 0

    async def replay_sample(run: str, number: int, sample: Sample) -> ReplayedEpisode:
        nonlocal done
        async with slots:
            episode = await replay(measurement.judge, client, run, sample)
        if episode.is_judged:
            await asyncio.to_thread(folder.write, f"{number:05d}.json", episode.canonical)
        done += 1
        on_progress(done, len(samples))
        return episode

    try:
        run = await _open_run(measurement, client)
        if run.closing and samples:  # killed after it was closed: the others need a new run
            forget_run_name(measurement.out)
            run = await _open_run(measurement, client)
        episodes = await asyncio.gather(*(replay_sample(run.id, *item) for item in samples.items()))
        if not run.closing:
            await client.close_run(measurement.live_digest)
        forget_run_name(measurement.out)
    finally:
        await client.close()
    return dict(zip(samples, episodes, strict=True))


async def _open_run(measurement: _Measurement, client: SimulatorClient) -> AgentRun:
    """A new run, or the one that a killed step opened."""
    opening = RunOpening(
        agent="nightly",
        starting_weights=measurement.live_digest,
        purpose="evaluation",
        simulator=measurement.pinned.digest,
    )
    return await client.open_run(opening, run_name(measurement.out))


def _report(
    measurement: _Measurement, samples: Sequence[Sample], replays: Sequence[ReplayedEpisode]
) -> ServedReport:
    nightly = measurement.recipe.nightly
    score = free_running_score(measurement.judge, samples, replays, nightly)
    report = measurement.pinned.world_report
    before = report.figures(report.subjects).get("free_running") if report else None
    change = score.exact_match.less(before) if before else None
    return ServedReport(
        simulator=measurement.pinned.digest,
        job=measurement.job,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        trajectories=measurement.live_digest,
        num_episodes=len(samples),
        free_running=score,
        latency=latency(replays),
        before=report.digest if report and before else None,
        change=change,
        drifted=change is not None and change.high < 0,
        absent=absent_metrics(nightly, score.metrics),
        rule=nightly.validated,
    )

"""Validates the agent at each stage of its training, in the simulator and live."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agentworld.client.base import World
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.domains.base import domain_of
from agentworld.domains.live import live_domain
from agentworld.engine.server import serve
from agentworld.errors import InputError
from agentworld.evaluate.agent import (
    EpisodeResult,
    Policy,
    agent_score,
    gain,
    held_out_tasks,
    play_all,
)
from agentworld.evaluate.live import LiveWorld
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.serving import open_client
from agentworld.operations.simulators import domain_of_agent, resolve_simulator
from agentworld.operations.statements import sign, submit
from agentworld.recipes import Recipe
from agentworld.records.base import Digest, digest_file, now
from agentworld.records.progress import OnProgress, sequential_parts, share_of
from agentworld.records.report import AgentReport
from agentworld.records.run import RunOpening
from agentworld.records.simulator import Sampling
from agentworld.records.statements.validation import Validation
from agentworld.records.trajectory import Trajectory
from agentworld.runner.folders import (
    REPORT,
    SELECTED_SIMULATOR,
    TRAJECTORY,
    SelectedSimulator,
    checkpoint_of,
    model_of,
)
from agentworld.runner.remote import fetch
from agentworld.runner.task import Plan, Task
from agentworld.storage.causal_lm import context_tokens
from agentworld.storage.simulators import SimulatorStore
from agentworld.storage.trajectories import write_trajectories

_IMITATED, _TRAINED = "imitated", "trained"


class _Episodes(NamedTuple):
    """An agent's episodes in both worlds."""

    simulated: list[EpisodeResult]
    live: list[EpisodeResult]


class _Weights(NamedTuple):
    """The weights of an agent."""

    digest: Digest
    model: Path


class _Agent(NamedTuple):
    """An agent with a running engine."""

    name: str
    weights: Digest
    policy: Policy


def plan(task: Task) -> Plan:
    """Writes the report, the live episodes and the agents' log of the simulated ones.

    The simulator is that of the agent's run, or the one of a given alias or digest.
    """
    settings, store = task.recipe, task.store
    imitated, agent = task.folders["imitated"], task.folders["agent"]
    base = _base(imitated, store)
    digest = _simulator(task.texts["simulator"], agent, store)
    domain = domain_of_agent(settings, resolve_simulator(digest, store))
    agents = {
        "base": base,
        _IMITATED: _Weights(task.digests["imitated"], model_of(imitated)),
        _TRAINED: _Weights(task.digests["agent"], model_of(agent)),
    }

    def work(out: Path, on_progress: OnProgress) -> Digest:
        live = LiveWorld(domain)
        with TrajectoryLog(out / TRAJECTORY) as trajectory_log:
            at_once, logs = settings.engine.concurrency, out / "logs"
            with open_client(digest, at_once, store, logs, trajectory_log) as simulator:
                worlds = _Worlds(simulator, live)
                parts = sequential_parts(on_progress, len(agents))
                episodes_of = {}
                for (name, weights), on_part in zip(agents.items(), parts, strict=True):
                    # one at a time, because vLLM allocates most of a device's memory
                    with _served_agent(name, weights, settings, logs) as served_agent:
                        episodes = _try(served_agent, worlds, domain, settings, out, on_part)
                    episodes_of[name] = episodes
        part = settings.validation
        report = AgentReport(
            simulator=digest,
            **{name: agent_score(*episodes, part) for name, episodes in episodes_of.items()},
            live_gain=gain(episodes_of[_TRAINED].live, episodes_of[_IMITATED].live, part),
            live_steps=live.num_steps,
            live_disagreements=live.num_disagreements,
            live_episodes={name: digest_file(out / name) for name in map(_live_file, episodes_of)},
        )
        report.write(out / REPORT)
        digests = {"artifact": task.digests["agent"], "imitated": task.digests["imitated"]}
        sign(Validation(step=out.name, report=report, at=now(), **digests), store, out)
        return report.digest

    inputs = {"base": base.digest, "simulator": digest, "ledger": ledger_digest()}
    return Plan(
        work,
        inputs,
        live_domain(domain).check_available,
        [domain],
        lambda folder: submit(folder, store),
    )


def _base(imitated: Path, store: Path) -> _Weights:
    """The world model's weights, from which imitation started."""
    simulator = SimulatorStore(store).find(
        SelectedSimulator.read(imitated / SELECTED_SIMULATOR).simulator
    )
    (digest,) = checkpoint_of(imitated).parents
    return _Weights(digest, simulator.model)


def _simulator(name: str, agent: Path, store: Path) -> Digest:
    if name:
        return resolve_simulator(name, store).digest
    trained_in = checkpoint_of(agent).simulator
    if trained_in is None:
        raise InputError(f"{agent} does not say which simulator trained it; name one")
    return trained_in


@contextmanager
def _served_agent(name: str, weights: _Weights, recipe: Recipe, logs: Path) -> Iterator[_Agent]:
    """Sampled as in training, so that the validated policy is the trained one."""
    practice = recipe.agent.rl
    sampling = Sampling(temperature=practice.temperature, max_tokens=practice.max_tokens)
    model = fetch(weights.model).resolve()
    with serve(
        model,
        recipe.engine,
        sampling=sampling,
        context_tokens=context_tokens(model),
        log=logs / f"{name}.log",
    ) as engine:
        policy = Policy(engine.connect(), sampling, weights.digest)
        yield _Agent(name, weights.digest, policy)


class _Worlds(NamedTuple):
    """The two worlds of a validation."""

    simulated: SimulatorClient
    live: LiveWorld


def _try(
    agent: _Agent, worlds: _Worlds, domain: str, recipe: Recipe, out: Path, on_progress: OnProgress
) -> _Episodes:
    """Plays the same tasks in both worlds."""
    task_of = partial(live_domain(domain).task, held_out=True)
    tasks = held_out_tasks(recipe.validation, task_of)
    opening = RunOpening(
        agent=recipe.agent.name,
        starting_weights=agent.weights,
        purpose="evaluation",
        simulator=worlds.simulated.simulator,
    )

    async def play(world: World, part: OnProgress) -> list[EpisodeResult]:
        return await play_all(agent.policy, domain_of(domain), world, tasks, part)

    async def play_in_both() -> _Episodes:
        await worlds.simulated.open_run(opening)
        simulated = await play(worlds.simulated, share_of(on_progress, 0, 0.5))
        await worlds.simulated.close_run(agent.weights)
        try:
            live = await play(worlds.live, share_of(on_progress, 0.5, 1))
        finally:
            # In the event loop that opened them: episodes whose agent failed early are still open.
            await worlds.live.close()
        await agent.policy.engine.close()
        return _Episodes(simulated, live)

    episodes = asyncio.run(play_in_both())
    write_trajectories(
        out / _live_file(agent.name), _trajectories(domain, episodes.live, agent.weights)
    )
    return episodes


def _live_file(agent: str) -> str:
    return f"{agent}-live.jsonl"


def _trajectories(
    domain: str, episodes: Sequence[EpisodeResult], artifact: Digest
) -> list[Trajectory]:
    """Live episodes as trajectories, for the next data set."""
    return [
        Trajectory(
            domain=domain,
            source=artifact,
            seed=result.task.seed,
            held_out=True,
            initial_state=result.task.initial_state,
            task=result.task,
            turns=result.turns,
        )
        for result in episodes
    ]

"""Step 15: the agent before and after its training, in the simulator and in the live shell."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from agentworld.client.base import World
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.domains.sandbox import check_sandbox
from agentworld.domains.terminal.prompts import DOMAIN
from agentworld.engine.server import serve
from agentworld.errors import InputError
from agentworld.evaluate.agent import (
    Played,
    Policy,
    agent_score,
    gain,
    held_out_tasks,
    play_all,
)
from agentworld.evaluate.live import LiveWorld
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick, share_of
from agentworld.records.report import AgentReport
from agentworld.records.run import RunOpening
from agentworld.records.simulator import Sampling
from agentworld.records.step_statement import Validation
from agentworld.records.trajectory import Trajectory
from agentworld.simulate.adopting import now
from agentworld.steps.base import output_of, run_step
from agentworld.steps.filing import hand_in, sign
from agentworld.steps.folders import (
    REPORT,
    TRAJECTORY,
    checkpoint_of,
    context_tokens_of,
    model_of,
)
from agentworld.steps.ledger import ledger_digest
from agentworld.steps.remote import anywhere
from agentworld.steps.serving import reached
from agentworld.steps.simulators import chosen_simulator
from agentworld.storage.trajectories import write_trajectories

_UNTRAINED, _TRAINED = "untrained", "trained"


class _Episodes(NamedTuple):
    """What one agent did in both worlds."""

    simulated: list[Played]
    live: list[Played]


class _Agent(NamedTuple):
    """An agent whose engine runs."""

    name: str
    weights: Digest
    policy: Policy


class _Served(NamedTuple):
    """All that a validation asks."""

    simulator: SimulatorClient
    untrained: _Agent
    trained: _Agent


@anywhere("imitated", "agent")
def validate(recipe: str, store: str, imitated: str, agent: str, simulator: str = "") -> str:
    """The folder of the report, of the live episodes and of the agents' log of the simulated.

    The simulator is that of the agent's run, or one that is named: by an alias, or a digest.
    """
    chosen = load_recipe(recipe_path(recipe))
    parents = {"imitated": output_of(imitated), "agent": output_of(agent)}
    digest = _simulator(simulator, Path(agent), Path(store))
    agents = {_UNTRAINED: Path(imitated), _TRAINED: Path(agent)}

    def work(out: Path, tick: Tick) -> Digest:
        live = LiveWorld()
        with _closed_after(live), TrajectoryLog(out / TRAJECTORY) as acted:
            at_once = chosen.engine.concurrency
            world = reached(digest, at_once, Path(store), out / "logs", acted)
            with _all_served(world, agents, chosen, out / "logs") as asked:
                worlds = _Worlds(asked.simulator, live)
                before = _try(asked.untrained, worlds, chosen, out, share_of(tick, 0, 0.5))
                after = _try(asked.trained, worlds, chosen, out, share_of(tick, 0.5, 1))
        part = chosen.validation
        report = AgentReport(
            simulator=digest,
            untrained=agent_score(before.simulated, before.live, part),
            trained=agent_score(after.simulated, after.live, part),
            live_gain=gain(after.live, before.live, part),
            live_steps=live.num_steps,
        )
        report.write(out / REPORT)
        told = {"artifact": parents["agent"], "untrained": parents["imitated"]}
        sign(Validation(step=out.name, report=report, at=now(), **told), Path(store), out)
        return report.digest

    inputs = {**parents, "simulator": digest, "ledger": ledger_digest()}
    parts = [chosen.validation, chosen.engine, chosen.agent]
    folder = run_step(Path(store), "validate", parts, inputs, work, check=check_sandbox)
    return str(hand_in(folder, Path(store)))


def _simulator(name: str, agent: Path, store: Path) -> Digest:
    if name:
        return chosen_simulator(name, store).digest
    trained_in = checkpoint_of(agent).simulator
    if trained_in is None:
        raise InputError(f"{agent} does not say which simulator trained it; name one")
    return trained_in


@contextmanager
def _closed_after(live: LiveWorld) -> Iterator[None]:
    try:
        yield
    finally:
        asyncio.run(live.close())


@contextmanager
def _all_served(
    world: AbstractContextManager[SimulatorClient],
    folders: Mapping[str, Path],
    chosen: Recipe,
    logs: Path,
) -> Iterator[_Served]:
    """Starts the simulator and both agents' engines side by side."""
    # A server ends with the thread that started it, so that the threads outlive all of them.
    with ThreadPoolExecutor() as threads, ExitStack() as started:
        simulator = threads.submit(started.enter_context, world)
        agents = [
            threads.submit(started.enter_context, _served_agent(name, folder, chosen, logs))
            for name, folder in folders.items()
        ]
        # None is still starting when the failure of one ends them all.
        wait(agents)
        wait([simulator])
        untrained, trained = (served_agent.result() for served_agent in agents)
        yield _Served(simulator.result(), untrained, trained)


@contextmanager
def _served_agent(name: str, folder: Path, chosen: Recipe, logs: Path) -> Iterator[_Agent]:
    """Drawn from as in training: the policy that is judged is the one that learned."""
    practice = chosen.agent.rl
    sampling = Sampling(temperature=practice.temperature, max_tokens=practice.max_tokens)
    weights = checkpoint_of(folder).artifact
    with serve(
        model_of(folder).resolve(),
        chosen.engine,
        sampling=sampling,
        context_tokens=context_tokens_of(folder),
        log=logs / f"{name}.log",
    ) as engine:
        yield _Agent(name, weights, Policy(engine.connect(), sampling, weights))


class _Worlds(NamedTuple):
    """Where an agent is tried."""

    simulated: SimulatorClient
    live: LiveWorld


def _try(agent: _Agent, worlds: _Worlds, chosen: Recipe, out: Path, tick: Tick) -> _Episodes:
    """Lets an agent do the same tasks in both worlds."""
    tasks = held_out_tasks(chosen.validation)
    opening = RunOpening(
        agent=chosen.agent.name,
        starting_weights=agent.weights,
        purpose="evaluation",
        simulator=worlds.simulated.simulator,
    )

    async def play(world: World, part: Tick) -> list[Played]:
        return await play_all(agent.policy, world, tasks, part)

    async def play_in_both() -> _Episodes:
        await worlds.simulated.open_run(opening)
        simulated = await play(worlds.simulated, share_of(tick, 0, 0.5))
        await worlds.simulated.close_run(agent.weights)
        live = await play(worlds.live, share_of(tick, 0.5, 1))
        await agent.policy.engine.close()
        return _Episodes(simulated, live)

    episodes = asyncio.run(play_in_both())
    write_trajectories(
        out / f"{agent.name}-live.jsonl", _trajectories(episodes.live, agent.weights)
    )
    return episodes


def _trajectories(episodes: Sequence[Played], artifact: Digest) -> list[Trajectory]:
    """Live episodes in the form that the next data set can be made of."""
    return [
        Trajectory(
            domain=DOMAIN,
            source=artifact,
            seed=played.task.seed,
            held_out=True,
            initial_state=played.task.initial_state,
            task=played.task,
            turns=played.turns,
        )
        for played in episodes
    ]

"""Step 10: the agent before and after its training, in the simulator and in the live shell."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agentworld.client.base import World
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.domains.terminal.prompts import DOMAIN
from agentworld.engine.server import serve
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
from agentworld.records.trajectory import Trajectory
from agentworld.steps.base import output_of, run_step
from agentworld.steps.folders import (
    REPORT,
    TRAINED,
    TRAJECTORY,
    UNTRAINED,
    checkpoint_of,
    context_tokens_of,
    model_of,
)
from agentworld.steps.serving import served
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.trajectories import write_trajectories


class _Episodes(NamedTuple):
    """What one agent did in both worlds."""

    simulated: list[Played]
    live: list[Played]


def validate(recipe: str, store: str, simulator: str, agent: str) -> str:
    """The folder of the report, of the live episodes and of the agents' log of the simulated."""
    chosen = load_recipe(recipe_path(recipe))

    def work(out: Path, tick: Tick) -> Digest:
        live = LiveWorld()
        with (
            _closed_after(live),
            TrajectoryLog(out / TRAJECTORY) as acted,
            served(Path(simulator), chosen.engine, Path(store), out / "logs", acted) as client,
        ):
            worlds = _Worlds(client, live)
            before = _try(Path(agent) / UNTRAINED, worlds, chosen, out, share_of(tick, 0, 0.5))
            after = _try(Path(agent) / TRAINED, worlds, chosen, out, share_of(tick, 0.5, 1))
        part = chosen.validation
        report = AgentReport(
            simulator=PinnedSimulator.read(Path(simulator)).digest,
            untrained=agent_score(before.simulated, before.live, part),
            trained=agent_score(after.simulated, after.live, part),
            live_gain=gain(after.live, before.live, part),
            live_steps=live.num_steps,
        )
        report.write(out / REPORT)
        return report.digest

    inputs = {"agent": output_of(agent)}
    inputs["simulator"] = PinnedSimulator.read(Path(simulator)).digest
    parts = [chosen.validation, chosen.engine, chosen.agent]
    return str(run_step(Path(store), "validate", parts, inputs, work))


@contextmanager
def _closed_after(live: LiveWorld) -> Iterator[None]:
    try:
        yield
    finally:
        asyncio.run(live.close())


class _Worlds(NamedTuple):
    """Where an agent is tried."""

    simulated: SimulatorClient
    live: LiveWorld


def _try(agent: Path, worlds: _Worlds, chosen: Recipe, out: Path, tick: Tick) -> _Episodes:
    """Serves an agent and lets it do the same tasks in both worlds."""
    # Drawn as in training: the policy that is judged is the one that learned.
    practice = chosen.agent.rl
    sampling = Sampling(temperature=practice.temperature, max_tokens=practice.max_tokens)
    tasks = held_out_tasks(chosen.validation)
    checkpoint = checkpoint_of(agent)
    opening = RunOpening(
        agent=chosen.agent.name, starting_weights=checkpoint.artifact, purpose="evaluation"
    )
    with serve(
        model_of(agent).resolve(),
        chosen.engine,
        sampling=sampling,
        context_tokens=context_tokens_of(agent),
        log=out / "logs" / f"{agent.name}.log",
    ) as served_agent:
        policy = Policy(served_agent.connect(), sampling, checkpoint.artifact)

        async def play(world: World, part: Tick) -> list[Played]:
            return await play_all(policy, world, tasks, part)

        async def play_in_both() -> _Episodes:
            await worlds.simulated.open_run(opening)
            simulated = await play(worlds.simulated, share_of(tick, 0, 0.5))
            await worlds.simulated.close_run(checkpoint.artifact)
            live = await play(worlds.live, share_of(tick, 0.5, 1))
            await policy.engine.close()
            return _Episodes(simulated, live)

        episodes = asyncio.run(play_in_both())
    write_trajectories(
        out / f"{agent.name}-live.jsonl", _trajectories(episodes.live, checkpoint.artifact)
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

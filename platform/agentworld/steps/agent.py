"""Step 10: a policy imitates explorers, then learns by RL in the pinned simulator alone."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.evidence.keys import STEP_KEYS, Signer, ensure_signer
from agentworld.evidence.weights import RunWeights, sign_weights
from agentworld.lineage.base import Agent
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import Tick, share_of
from agentworld.records.run import AgentRun, RunOpening
from agentworld.simulate.stores import Stores
from agentworld.steps.addresses import open_registry, registry_digest
from agentworld.steps.base import output_of, run_step
from agentworld.steps.folders import (
    CHECKPOINT,
    RUN,
    TRAINED,
    TRAJECTORY,
    UNTRAINED,
    TrainedAgent,
    checkpoint_of,
    model_of,
)
from agentworld.steps.guard import no_live_shell
from agentworld.steps.heavy import lasting
from agentworld.steps.ledger import ledger_digest
from agentworld.steps.serving import served
from agentworld.storage.simulators import PinnedSimulator

_OPENED = "opened.json"
_IMITATION_SHARE = 0.25


class _Opened(Record):
    """The run that a killed step continues."""

    run: str


def agent(recipe: str, store: str, collected: str, simulator: str) -> str:
    """The folder of the agent: `untrained` and `trained` checkpoints, and its run."""
    chosen = load_recipe(recipe_path(recipe))

    def work(out: Path, tick: Tick) -> Digest:
        with no_live_shell() as guard:
            learning = share_of(tick, 0, _IMITATION_SHARE)
            untrained = _imitate(chosen, Path(collected), Path(simulator), out, learning)
            signer = ensure_signer(Stores.of(Path(store)).keys / STEP_KEYS)
            serving = Path(simulator), chosen.engine, Path(store), out / "logs"
            with TrajectoryLog(out / TRAJECTORY) as acted, served(*serving, acted) as client:
                practising = share_of(tick, _IMITATION_SHARE, 1)
                trained, run = _practise(chosen, untrained, client, signer, out, practising)
        made = Agent(checkpoint=trained, run=run.id)
        registry = open_registry(Path(store))
        version = registry.register_agent(chosen.agent.name, made, model_of(out / TRAINED))
        result = TrainedAgent(version=version, run=run, live_steps=guard.num_refused)
        result.write(out / RUN)
        return trained.artifact

    inputs = {
        "collected": output_of(collected),
        "simulator": PinnedSimulator.read(Path(simulator)).digest,
        "registry": registry_digest(),
        "ledger": ledger_digest(),
    }
    return str(run_step(Path(store), "agent", [chosen.agent, chosen.engine], inputs, work))


def _imitate(chosen: Recipe, collected: Path, simulator: Path, out: Path, tick: Tick) -> Checkpoint:
    """The untrained agent: a world model that has seen how explorers act."""
    with lasting():
        from agentworld.train import imitation
    parent, before = model_of(simulator), out / UNTRAINED
    return _once(before, lambda: imitation.run(chosen.agent, collected, parent, before, tick))


def _practise(
    chosen: Recipe,
    untrained: Checkpoint,
    client: SimulatorClient,
    signer: Signer,
    out: Path,
    tick: Tick,
) -> tuple[Checkpoint, AgentRun]:
    """The trained agent and its run, closed with the weights that it made."""
    with lasting():
        from agentworld.train import agent_rl
    parent, after = model_of(out / UNTRAINED), out / TRAINED
    run = asyncio.run(_open_run(client, chosen.agent.name, untrained, out))
    trained = _once(
        after,
        lambda: agent_rl.run(chosen.agent, parent, client, run.simulator, after, tick),
    )
    made = RunWeights(run=run.id, simulator=run.simulator, weights=trained.artifact)
    signature = sign_weights(made, signer)
    return trained, asyncio.run(client.close_run(trained.artifact, signature))


async def _open_run(
    client: SimulatorClient, name: str, untrained: Checkpoint, out: Path
) -> AgentRun:
    """A run that starts from the untrained weights, or the one that a killed step left open."""
    if (out / _OPENED).is_file():
        return await client.resume_run(_Opened.read(out / _OPENED).run)
    run = await client.open_run(RunOpening(agent=name, starting_weights=untrained.artifact))
    _Opened(run=run.id).write(out / _OPENED)
    return run


def _once(folder: Path, make: Callable[[], Checkpoint]) -> Checkpoint:
    """A training's result; a killed step does not repeat a training that was finished."""
    return checkpoint_of(folder) if (folder / CHECKPOINT).is_file() else make()

"""Trains a policy to imitate explorers, from the weights of its simulator's world model."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from agentworld.domains.live import no_environment
from agentworld.errors import InputError
from agentworld.operations.base_model import world_model_of
from agentworld.operations.simulators import resolve_simulator
from agentworld.records.base import Digest, digest_json
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import OnProgress
from agentworld.records.trajectory import Trajectory
from agentworld.runner.folders import SELECTED_SIMULATOR, SelectedSimulator, reuse_or_train
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import fetch
from agentworld.runner.task import Plan, Task
from agentworld.steps.start import check_rates
from agentworld.storage.trajectories import read_trajectories
from agentworld.train.parent import Parent


def plan(task: Task) -> Plan:
    """Trains an agent, and records its simulator.

    The simulator is resolved here only, by its folder, an alias or the start of its digest; empty
    means the alias that the recipe deploys to. Raises InputError for a simulator without weights,
    or whose weights were never registered.
    """
    settings = task.recipe
    pinned = resolve_simulator(task.texts["simulator"] or settings.deploy.alias, task.store)
    if pinned.manifest.artifact is None:
        raise InputError(
            f"{pinned.digest} is the world of an endpoint, which has no weights that an agent could"
            " start from; name a simulator that was pinned"
        )
    world_model = world_model_of(pinned.manifest.artifact, task.store)
    if world_model is None:
        raise InputError(
            f"no registered version has the weights of {pinned.digest}, so that no agent of"
            " it could be followed back to its data; name a simulator of a registered world model"
        )
    last = world_model.stages[-1]
    check_rates("agent.imitation", settings.agent.imitation, from_scratch=last.from_scratch)
    # checked here, because RL would fail only hours later
    check_rates("agent.rl", settings.agent.rl, from_scratch=last.from_scratch)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        with frozen_gc():
            from agentworld.train import imitation
        SelectedSimulator(simulator=pinned.digest).write(out / SELECTED_SIMULATOR)

        def train() -> Checkpoint:
            parent = Parent(fetch(pinned.model), checkpoint=last)
            return imitation.run(settings.agent, _episodes(task), parent, out, on_progress)

        with no_environment():
            return reuse_or_train(out, train).artifact

    redact = digest_json(settings.prepare.redact)
    return Plan(work, {"simulator": pinned.digest, "redact": redact})


def _episodes(task: Task) -> Iterable[Trajectory]:
    """The collected trajectories, with secrets replaced if the recipe does so for data sets."""
    trajectories = read_trajectories(task.folders["collected"])
    if not task.recipe.prepare.redact:
        return trajectories
    from agentworld.data.redaction import redact_trajectories

    pairs = ((trajectory.digest, trajectory) for trajectory in trajectories)
    return (item.trajectory for item in redact_trajectories(pairs, Counter()))

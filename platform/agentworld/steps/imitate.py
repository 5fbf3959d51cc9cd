"""A policy imitates explorers, from the weights of the simulator that it will act in."""

from pathlib import Path

from agentworld.domains.live import no_environment
from agentworld.errors import InputError
from agentworld.operations.simulators import resolve_simulator, versions_of
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.folders import SELECTED_SIMULATOR, SelectedSimulator, once
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import fetch
from agentworld.runner.task import Plan, Task


def plan(task: Task) -> Plan:
    """Trains an agent, and writes for which simulator it is.

    That is found here and never again, by its folder, an alias or the start of its digest; empty
    means the alias that the recipe deploys to. Raises InputError for one without weights, or whose
    weights were never registered.
    """
    settings = task.recipe
    pinned = resolve_simulator(task.texts["simulator"] or settings.deploy.alias, task.store)
    if pinned.manifest.artifact is None:
        raise InputError(
            f"{pinned.digest} is the world of an endpoint, which has no weights that an agent could"
            " start from; name a simulator that was pinned"
        )
    if not versions_of(pinned, task.store):
        raise InputError(
            f"no registered version stands for the weights of {pinned.digest}, so that no agent of"
            " it could be followed back to its data; name a simulator of a registered world model"
        )

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import imitation
        SelectedSimulator(simulator=pinned.digest).write(out / SELECTED_SIMULATOR)
        with no_environment():
            return once(
                out,
                lambda: imitation.run(
                    settings.agent, task.folders["collected"], fetch(pinned.model), out, tick
                ),
            ).artifact

    return Plan(work, {"simulator": pinned.digest})

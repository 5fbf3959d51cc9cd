"""Runs steps for which their own pod may not be enough: a stage with its own nodes in a Job or a
TrainJob, and a step with live environments in a Job if this pod cannot run a sandbox. Heavy
packages are imported only after that decision; a step in this process needs no cluster.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from agentworld.errors import EnvironmentUnavailable
from agentworld.records.gate import GateVerdict
from agentworld.runner.folders import VERDICT
from agentworld.runner.remote import local_path, on_store
from agentworld.steps.run import run_by_name
from agentworld.storage.working_copy import copy_of


class Verdict(NamedTuple):
    """The gate's result for the pipeline."""

    folder: str
    verdict: Literal["passed", "refused"]
    reason: str
    """The figures that were too small; empty if there were none."""


def decide(recipe: str, store: str, report: str) -> Verdict:
    """The folder of the gate's verdict, and the verdict."""
    folder = run_by_name("gate", recipe, store, report)
    verdict = GateVerdict.read(Path(local_path(f"{folder}/{VERDICT}", store)))
    return Verdict(folder, verdict.verdict, verdict.reason)


def train(stage: str, recipe: str, store: str, *inputs: str, place: str = "") -> str:
    """The folder of the finished stage.

    `place` is the place with its own nodes as JSON; if it is empty, the stage is trained in this
    process.
    """
    if place:
        from agentworld_pipelines.follow_job import train_on_nodes

        return train_on_nodes(stage, recipe, store, *inputs, nodes=place)
    return run_by_name(stage, recipe, store, *inputs)


def deploy(step: str, recipe: str, store: str, simulator: str, *, place: str = "") -> str:
    """The folder with the serving record of a pinned simulator.

    `place` is the cluster's target as JSON; if it is empty, the alias moves in the store only.
    """
    if place:
        from agentworld_pipelines.deploying import deploy_on_cluster

        return deploy_on_cluster(recipe, store, simulator, place)
    return run_by_name(step, recipe, store, simulator)


@on_store
def live(step: str, recipe: str, store: str, *others: str, place: str = "") -> str:
    """The folder of the finished step.

    `place` is the step's place as JSON, for its own Job if this pod cannot run a sandbox; if it is
    empty, or other pods cannot reach the store, the step raises EnvironmentUnavailable instead.
    """
    if not place or not _is_reached(store, place):
        return run_by_name(step, recipe, store, *others)

    def try_step() -> str | None:
        """Null if live environments are needed and unavailable here."""
        with suppress(EnvironmentUnavailable):
            return run_by_name(step, recipe, store, *others)
        return None

    folder = try_step()
    if folder is None:
        from agentworld_pipelines.follow_job import run_in_job

        folder = run_in_job(step, (recipe, store, *others), place, try_step)
    return folder


def _is_reached(store: str, place: str) -> bool:
    """Whether other pods can reach the store."""
    return copy_of(Path(store)) is not None or bool(json.loads(place).get("volumes"))

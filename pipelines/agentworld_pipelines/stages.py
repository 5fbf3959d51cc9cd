"""How a step is done for which its own pod may not be enough: a stage of several nodes by a
TrainJob, and a step of live shells by a Job where this pod can have no sandbox.

Nothing heavy is imported before it is known which; a step in this process needs no cluster.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from agentworld.errors import SandboxUnavailable
from agentworld.runner.remote import anywhere
from agentworld.storage.working_copy import copy_of

LIVE = ("collect", "validate", "measure")
"""The steps that open live shells."""


def train(stage: str, recipe: str, store: str, *inputs: str, nodes: str = "") -> str:
    """The folder of the finished stage.

    `nodes` is the place of several nodes as JSON; where it is empty the stage is trained here.
    """
    if nodes:
        from agentworld_pipelines.follow_job import followed

        return followed(stage, recipe, store, *inputs, nodes=nodes)
    return str(_function_of(stage)(recipe, store, *inputs))


@anywhere()
def live(step: str, recipe: str, store: str, *others: str, place: str = "") -> str:
    """The folder of the finished step.

    `place` is the step's place as JSON, for a Job of its own where this pod can have no sandbox;
    where it is empty, or no other pod would find the store, the step then raises
    SandboxUnavailable.
    """
    arguments = (recipe, store, *others)
    work = _function_of(step)
    if not place or not _is_reached(store, place):
        return str(work(*arguments))

    def finished() -> str | None:
        """Null where live shells are needed, and cannot be had here."""
        with suppress(SandboxUnavailable):
            return str(work(*arguments))
        return None

    folder = finished()
    if folder is None:
        from agentworld_pipelines.follow_job import followed_apart

        folder = followed_apart(step, arguments, place, finished)
    return folder


def _is_reached(store: str, place: str) -> bool:
    """By other pods than this one."""
    return copy_of(Path(store)) is not None or bool(json.loads(place).get("volumes"))


def _function_of(step: str) -> Callable[..., object]:
    function: Callable[..., object] = getattr(import_module(f"agentworld.steps.{step}"), step)
    return function

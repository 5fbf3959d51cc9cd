"""The two records of a step's module: its task, and its plan."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from agentworld.recipes import Recipe
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress

Work = Callable[[Path, OnProgress], Digest]
"""Fills a folder and returns the digest of the result."""


class Task(NamedTuple):
    """A step to run: its recipe, its store and its arguments."""

    recipe: Recipe
    store: Path
    folders: Mapping[str, Path]
    """The folders of finished steps that it reads, by argument; optional ones may be missing."""
    digests: Mapping[str, Digest]
    """The digests of these steps' results, by argument."""
    texts: Mapping[str, str]
    """The other arguments."""


class Plan(NamedTuple):
    """How a step does its task; planning is cheap and changes nothing."""

    work: Work
    inputs: Mapping[str, Digest] = {}
    """Inputs in addition to the folders of other steps."""
    check: Callable[[], None] | None = None
    """Raises an error if the work cannot be done here, before anything is started."""
    domains: Collection[str] = ()
    """The domains whose code the work runs."""
    answer: Callable[[Path], Path] = lambda folder: folder
    """Maps the finished step's folder to the step's result."""
    reads: Collection[str] = ()
    """Arguments whose files it needs, in addition to those in the step's declaration."""


Planner = Callable[[Task], Plan]

"""What a step is given, and what it answers: the two records that a step's module knows."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from agentworld.recipes import Recipe
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress

Work = Callable[[Path, OnProgress], Digest]
"""Fills a folder and names what it made."""


class Task(NamedTuple):
    """A step to be done: its recipe, its store and its arguments."""

    recipe: Recipe
    store: Path
    folders: Mapping[str, Path]
    """Of the finished steps that it reads, by argument; one that may be left out may be missing."""
    digests: Mapping[str, Digest]
    """What these steps made, by argument."""
    texts: Mapping[str, str]
    """Every other argument."""


class Plan(NamedTuple):
    """How a step does its task; to plan it costs little and changes nothing."""

    work: Work
    inputs: Mapping[str, Digest] = {}
    """What it reads beside the folders of other steps."""
    check: Callable[[], None] | None = None
    """Raises where the work cannot be done here; then nothing of it is begun."""
    domains: Collection[str] = ()
    """The kinds of world whose code the work runs."""
    answer: Callable[[Path], Path] = lambda folder: folder
    """From the finished step's folder, now or before, to the folder that the step answers."""
    reads: Collection[str] = ()
    """Arguments whose files it needs, beside those of which the step always does."""


Planner = Callable[[Task], Plan]

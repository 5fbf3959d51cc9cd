"""What the episodes of an environment begin with, one after the other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.episode import EpisodeOpening
from agentworld.records.task import Task

Start = Task | Mapping[str, object]
"""A task, or fields of an EpisodeOpening: all but `run`, `seed` and what the service records."""

_NO_OPTIONS = ("run", "seed", "accelerators")
FIELDS = tuple(name for name in EpisodeOpening.model_fields if name not in _NO_OPTIONS)
_SOURCES = {"fork", "replay"}
# A task brings its own, and the service would pass over these.
_OF_THE_TASK = {"initial_state", "turn_limit"}


class NextStart(NamedTuple):
    """What an episode begins with, and whose turn it is once it has begun."""

    opening: EpisodeOpening
    turn: int


class Starts:
    """Several starts take turns, each `stride`-th from `turn` on. A seed says whose turn it is:
    the start at this place, modulo their number.
    """

    def __init__(
        self, start: Start | Sequence[Start] | None, *, turn: int = 0, stride: int = 1
    ) -> None:
        self.turn = turn
        self._stride = stride
        self._starts = tuple(_fields(episode_start) for episode_start in _as_sequence(start))
        if not self._starts:
            raise InputError("there is no task in an empty list; give one, or none at all")
        for fields in self._starts:
            _opening(fields)

    def next(self, run: str, seed: int | None, options: Mapping[str, object]) -> NextStart:
        """The next episode's start, where `options` say something else only for this one.

        Raises InputError for options that are none, or that a task would silently outdo.
        """
        turn = self.turn if seed is None else seed
        own = self._starts[turn % len(self._starts)]
        overrides = _fields(options)
        # A fork and a replay take all that they start with from their source.
        fields = overrides if overrides.keys() & _SOURCES else {**own, **overrides}
        step = 0 if overrides.keys() & {"task", *_SOURCES} else self._stride
        return NextStart(_opening(fields, run, seed), turn + step)


def _as_sequence(start: Start | Sequence[Start] | None) -> Iterable[Start]:
    if start is None:
        return [{}]
    return [start] if isinstance(start, Task | Mapping) else start


def _fields(start: Start) -> dict[str, Any]:
    if isinstance(start, Task):
        return {"task": start}
    if not isinstance(start, Mapping):
        raise InputError(f"an episode starts with a task or with options, not {start!r:.80}")
    for name in start:
        if name not in FIELDS:
            raise InputError(f"there is no option {name!r:.80}; there are {', '.join(FIELDS)}")
    return dict(start)


def _opening(
    fields: Mapping[str, object], run: str = "", seed: int | None = None
) -> EpisodeOpening:
    ignored = sorted(fields.keys() & _OF_THE_TASK) if fields.get("task") else ()
    if ignored:
        raise InputError(f"a task brings its own {' and '.join(ignored)}; leave it out")
    try:
        return EpisodeOpening.model_validate({**fields, "run": run, "seed": seed})
    except ValidationError as error:
        raise InputError(f"no episode begins so: {first_problem(error)}; correct it") from error

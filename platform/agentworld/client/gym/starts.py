"""The starts of an environment's episodes, one after the other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.episode import EpisodeOpening
from agentworld.records.task import Task

Start = Task | Mapping[str, object]
"""A task, or fields of an EpisodeOpening except `run`, `seed` and those that the service records.
"""

_NO_OPTIONS = ("run", "seed", "accelerators")
FIELDS = tuple(name for name in EpisodeOpening.model_fields if name not in _NO_OPTIONS)
_SOURCES = {"fork", "replay"}
# a task has these itself, and the service would ignore them
_OF_THE_TASK = {"initial_state", "turn_limit"}


class NextStart(NamedTuple):
    """The start of an episode, and the index of the next start."""

    opening: EpisodeOpening
    turn: int


class Starts:
    """Cycles through several starts, from `turn` on in steps of `stride`.

    A seed selects the start with this index, modulo the number of starts.
    """

    def __init__(
        self, start: Start | Sequence[Start] | None, *, turn: int = 0, stride: int = 1
    ) -> None:
        self.turn = turn
        self._stride = stride
        self._starts = tuple(_fields(episode_start) for episode_start in _as_sequence(start))
        if not self._starts:
            raise InputError("the list of tasks is empty; give a task, or no list")
        for fields in self._starts:
            _opening(fields)

    def next(self, run: str, seed: int | None, options: Mapping[str, object]) -> NextStart:
        """The start of the next episode, with `options` for this episode only.

        Raises InputError for unknown options, and for options that a task would override.
        """
        turn = self.turn if seed is None else seed
        own = self._starts[turn % len(self._starts)]
        overrides = _fields(options)
        # forks and replays copy their start from the source
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
        raise InputError(
            f"the start of the episode is invalid: {first_problem(error)}; correct it"
        ) from error

"""Steps with an action and an observation: the rows of a table, a list in a row, or two lists.

Field names differ, so you set them, and the `alignment` of observations with actions.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Self

from pydantic import JsonValue, model_validator

from agentworld.data.importers.aligned import AlignmentOptions, Step, aligned_events, text_of_cell
from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_row
from agentworld.data.importers.episode_rows import episode_rows
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.paths import (
    fill,
    first_text,
    keys_at,
    names_in,
    text_at,
    value_at,
    value_of,
)
from agentworld.data.importers.rows import Row
from agentworld.data.importers.tables import table_rows
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_TASKS = ("task_id", "instance_id")
_MODELS = ("model",)


class StepsOptions(AlignmentOptions):
    """The paths of a record's parts; a path is a column's name, or such as `state.steps.0`."""

    action: str
    """Path of the action in a step; without steps, of the list of actions."""
    observation: str
    """Path of the observation in a step; without steps, of the list of observations."""
    arguments: str = ""
    """Path of the arguments, if the action is the name of a tool. Without it the action is all."""
    time: str = ""
    """Path of the time of the observation in a step."""
    steps: str = ""
    """Path of the list of steps in a row. `*` stands for every key, as in `*.*.profile`: each is an
    episode with the key as its id.
    """
    episode: str = ""
    """Path of the episode's id in a row that is one step. The rows of an episode must follow each
    other.
    """
    start: str = ""
    """Path of the start of the episode, in a row or in the episode's first row; `*` as in `steps`.
    """
    task: str = ""
    """Path of the task's id, in the same row; all trials of a task have the same. Default:
    `task_id`, else `instance_id` or the episode's id.
    """

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.steps and self.episode:
            raise ValueError("steps and episode are two ways to group steps; name one of them")
        return self

    @property
    def paths(self) -> list[str]:
        """All paths of the options."""
        of_rows = (self.steps, self.episode, self.start, self.task, *_TASKS, *_MODELS)
        return [*self.cells, *of_rows]

    @property
    def cells(self) -> list[str]:
        """The paths of the cells of a step, in the order of `Step`."""
        return [self.action, self.observation, self.arguments, self.time]


class Steps:
    """See `Importer`."""

    options = StepsOptions

    def claims(self, value: JsonValue) -> bool:  # noqa: ARG002
        """False: tables have no common form."""
        return False

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """An episode is a row, a list in a row, or a group of rows."""
        settings = StepsOptions.model_validate(options.model_dump())
        rows = table_rows(file, settings.paths)
        if settings.episode:
            for group in episode_rows(rows, settings.episode):
                row = Row(group.place, [row.value for row in group.rows], group.problem)
                places = [row.place for row in group.rows]
                yield read_row(row, domain, partial(_of_rows, places, settings))
        else:
            for row in rows:
                yield from _of_row(row, settings, domain)


IMPORTER: Importer = Steps()


def _of_rows(places: Sequence[str], options: StepsOptions, values: JsonValue) -> Episode:
    rows = values if isinstance(values, list) else []
    episode = text_at(rows[0], options.episode)
    return _episode(rows[0], _steps(places, rows, options), options, episode)


def _of_row(row: Row, options: StepsOptions, domain: str) -> Iterator[ImportResult]:
    if row.problem or not options.steps:
        yield read_row(row, domain, partial(_of_lists, options))
        return
    episodes = list(keys_at(row.value, options.steps))
    for keys in episodes:
        place = f"{row.place} {'/'.join(names_in(options.steps, keys))}".strip()
        yield read_row(Row(place, row.value), domain, partial(_of_list, keys, options))
    if not episodes:
        yield ImportResult(row.place, problem=f"there is no {options.steps}; name another path")


def _of_list(keys: Sequence[str], options: StepsOptions, row: JsonValue) -> Episode:
    path, names = ".".join(keys), names_in(options.steps, keys)
    values = _as_list(value_of(row, keys), path)
    steps = _steps([f"{path}[{number}]" for number in range(len(values))], values, options)
    return _episode(row, steps, options, "/".join(names), names)


def _of_lists(options: StepsOptions, row: JsonValue) -> Episode:
    """Makes steps from parallel lists; the values at one index are a step."""
    lists = {path: _as_list(value_at(row, path), path) for path in options.cells if path}
    num_actions = len(lists[options.action])
    num_states = num_actions + (options.alignment == "next state")
    for path, values in lists.items():
        expected = num_states if path in (options.observation, options.time) else num_actions
        if len(values) != expected:
            raise InputError(
                f"{path}: {len(values)} values and {num_actions} actions do not align by"
                f" `{options.alignment}`, which wants {expected}"
            )
    steps: list[JsonValue] = [
        {path: values[number] for path, values in lists.items() if number < len(values)}
        for number in range(num_states)
    ]
    return _episode(row, _steps([f"step {n}" for n in range(num_states)], steps, options), options)


def _as_list(value: JsonValue, path: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise InputError(f"{path} is a {type(value).__name__} and no list; name another path")
    return value


def _steps(places: Sequence[str], values: Sequence[JsonValue], options: StepsOptions) -> list[Step]:
    columns = [_column(values, path) if path else [None] * len(values) for path in options.cells]
    steps = [Step(*cells) for cells in zip(places, *columns, strict=True)]
    if options.arguments:
        return [step._replace(arguments=step.arguments or {}) for step in steps]
    return steps


def _column(values: Sequence[JsonValue], path: str) -> list[JsonValue]:
    """The cells of the steps; raises InputError if there are several steps and none has one."""
    cells, problems = [], []
    for value in values:
        try:
            cells.append(value_at(value, path))
        except InputError as error:
            cells.append(None)
            problems.append(error)
    if len(problems) == len(values) > 1:
        raise problems[0]
    return cells


def _episode(
    row: JsonValue,
    steps: Sequence[Step],
    options: StepsOptions,
    name: str = "",
    names: Sequence[str] = (),
) -> Episode:
    start = _value(row, options.start, names) if options.start else None
    events = [Event(options.start, "start", text_of_cell(start))] if start is not None else []
    task = first_text(row, _TASKS) or name
    if options.task:
        task = text_at({options.task: _value(row, options.task, names)}, options.task)
    return Episode(
        source=options.source or first_text(row, _MODELS) or "steps",
        events=[*events, *aligned_events(steps, options)],
        task_id=task,
        licence=options.licence,
    )


def _value(row: JsonValue, path: str, names: Sequence[str]) -> JsonValue:
    return value_of(row, fill(path, names)) if names else value_at(row, path)

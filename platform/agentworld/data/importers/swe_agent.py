"""Trajectories of SWE-agent (`.traj`): a list of steps, each with its action and observation.

The import ignores messages, history and state: they repeat the steps or belong to the harness.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress

from pydantic import BaseModel, JsonValue, TypeAdapter

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_rows
from agentworld.data.importers.content import spans_of
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.paths import first_text, list_in, task_of
from agentworld.domains.base import Action
from agentworld.storage.source import SourceFile

_LISTS = ("trajectory",)
_TASKS = ("instance_id", "replay_config.problem_statement.id")
_MODEL = "replay_config.agent.model.name"
_MARKS = {
    "cut": re.compile(r"<response clipped>[^\n]*"),
    "harness": re.compile(
        r"EXECUTION TIMED OUT[^\n]*"
        r"|was cancelled because it took more than \d+ seconds\. Please try [^\n]*"
    ),
}


class SweAgentOptions(ImportOptions):
    """The places of fields in a record, if they are unusual."""

    steps: str = ""
    """Path of the list of steps. Default: `trajectory`."""
    task: str = ""
    """Path of the task's id; all trials of a task have the same. Default: `instance_id`, else
    `replay_config.problem_statement.id` or the name of a `.traj` file."""


class _Step(BaseModel):
    action: str | None = None
    observation: str | None = None
    thought: str | None = None


_STEPS = TypeAdapter(dict[str, _Step])


class SweAgent:
    """See `Importer`."""

    options = SweAgentOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether each step has an action, an observation and the model's response."""
        steps = value.get("trajectory") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(steps, list) or not steps:
            return False
        is_of_harness = not {"info", "environment", "history"}.isdisjoint(value)
        return is_of_harness and all(map(_is_step, steps))

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is an episode; a `.traj` file has one."""
        settings = SweAgentOptions.model_validate(options.model_dump())
        return read_rows(file, domain, lambda value: _episode(value, file.name, settings))


IMPORTER: Importer = SweAgent()


def _is_step(value: JsonValue) -> bool:
    return (
        isinstance(value, dict)
        and {"action", "observation"} <= value.keys()
        and not {"thought", "response"}.isdisjoint(value)
    )


def _episode(value: JsonValue, name: str, options: SweAgentOptions) -> Episode:
    path, values = list_in(value, options.steps, _LISTS, "steps")
    places = {f"{path}[{number}]": item for number, item in enumerate(values)}
    steps = _STEPS.validate_python(places)
    value = _with_settings(value)
    return Episode(
        source=options.source or first_text(value, [_MODEL]) or "swe_agent",
        events=[event for place, step in steps.items() for event in _events(step, place)],
        task_id=task_of(value, options.task, _TASKS, name),
        licence=options.licence,
    )


def _with_settings(value: JsonValue) -> JsonValue:
    """The record with its settings decoded, which may be JSON in a text."""
    settings = value.get("replay_config") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(settings, str):
        with suppress(ValueError, RecursionError):
            return value | {"replay_config": json.loads(settings)}
    return value


def _events(step: _Step, place: str) -> Iterator[Event]:
    if step.thought and step.thought.strip():
        reason = "what the agent wrote beside its calls"
        yield Event(f"{place}.thought", "left out", step.thought, reason=reason)
    text = step.observation or ""
    if not step.action or not step.action.strip():
        yield Event(place, "left out", text, reason="step without an action")
        return
    yield Event(f"{place}.action", "action", action=Action(step.action))
    if step.observation is not None:
        spans = spans_of(text, _MARKS)
        is_cut = any(span.what == "cut" for span in spans)
        location = f"{place}.observation"
        yield Event(location, "observation", text, spans=spans, is_cut=is_cut)

"""Makes events from steps with actions and observations in two columns, by a stated alignment."""

import json
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import JsonValue

from agentworld.data.importers.events import NO_CALL, Event
from agentworld.data.importers.messages import Function, ToolCall, action_of
from agentworld.data.importers.observations import ObservationOptions, observation_of
from agentworld.domains.base import Action
from agentworld.errors import InputError

_END = "end of the episode"


class AlignmentOptions(ObservationOptions):
    """Which observation answers an action."""

    alignment: Literal["same row", "next row", "next state"]
    """Which step has the observation of an action. `same row`: the action's own step. `next row`:
    the next step, because a step holds what the agent sees before it acts. `next state`: as
    `next row`, but the last step is a state without an action, so every action has an observation.
    Two lists must have equal lengths; for `next state` the observations have one more.
    """
    end: JsonValue = None
    """The value of `action` that marks the end of an episode, such as `[-1, "null"]`."""


class Step(NamedTuple):
    """The cells of a step; null for an empty cell."""

    place: str
    action: JsonValue
    observation: JsonValue
    arguments: JsonValue = None
    """The arguments of the tool that the action names; null if the action is not a tool's name."""
    time: JsonValue = None


def aligned_events(steps: Sequence[Step], options: AlignmentOptions) -> Iterator[Event]:
    """The events of all steps in order; raises InputError if they do not align."""
    are_acts = [step.action is not None and not _is_end(step, options) for step in steps]
    if options.alignment == "next state":
        _check_states(steps, are_acts)
    for number, step in enumerate(steps):
        if options.alignment == "same row":
            yield from _action(step, number, are_acts)
            yield from _observation(step, number, are_acts, options)
        else:
            yield from _observation(step, number - 1, are_acts, options)
            yield from _action(step, number, are_acts)


def text_of_cell(value: JsonValue) -> str:
    """A text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_end(step: Step, options: AlignmentOptions) -> bool:
    """Compares texts, because the cells of a table are texts."""
    return options.end is not None and text_of_cell(step.action) == text_of_cell(options.end)


def _check_states(steps: Sequence[Step], are_acts: Sequence[bool]) -> None:
    for number, (step, is_act) in enumerate(zip(steps, are_acts, strict=True), 1):
        if step.observation is None:
            raise InputError(
                f"{step.place} has no observation, which `next state` needs; add it, or name"
                " another alignment"
            )
        if is_act != (number < len(steps)):
            problem = "is the last step and has an action" if is_act else "has no action"
            raise InputError(
                f"{step.place} {problem}, which `next state` does not allow; name another alignment"
            )


def _action(step: Step, number: int, are_acts: Sequence[bool]) -> Iterator[Event]:
    if are_acts[number]:
        action = Action(text_of_cell(step.action))
        if step.arguments is not None:
            function = Function.model_validate({"name": step.action, "arguments": step.arguments})
            action = action_of(ToolCall(function=function))
        yield Event(step.place, "action", action.text, action, call=str(number))
    elif step.action is not None:
        yield Event(step.place, "left out", text_of_cell(step.action), reason=_END)


def _observation(
    step: Step, number: int, are_acts: Sequence[bool], options: AlignmentOptions
) -> Iterator[Event]:
    """The observation of an action; an observation before the first action is the start."""
    if step.observation is None:
        return
    text, spans, is_cut = observation_of(text_of_cell(step.observation), options)
    time = "" if step.time is None else text_of_cell(step.time)
    event = Event(step.place, "start", text, time=time, spans=spans, is_cut=is_cut)
    if number < 0:
        yield event
    elif are_acts[number]:
        yield event._replace(role="observation", call=str(number))
    else:
        yield event._replace(role="left out", reason=NO_CALL)

"""The events of an ATIF trajectory.

All agents of a trajectory act in one world. So the events of a sub-agent replace the call that
started it and the result that it reported.
"""

import re
from collections.abc import Container, Iterator, Sequence

from agentworld.data.importers.atif_records import Document, Result, Step, SubagentRef, ToolCall
from agentworld.data.importers.content import spans_of, text_of
from agentworld.data.importers.events import Event
from agentworld.data.importers.messages import Function, action_of
from agentworld.data.importers.messages import ToolCall as FunctionCall
from agentworld.domains.base import Action

_CUT = "note that it is cut"
_MARKS = {
    _CUT: re.compile(
        r"\n\[\.\.\. output limited to \d+ bytes; \d+ interior bytes omitted \.\.\.\]\n"
    ),
    "heading of the screen": re.compile(
        r"\A(Previous response had warnings:\n.*?\n\n|Current terminal state:\n)?"
        r"(New Terminal Output|Current Terminal Screen):\n",
        re.DOTALL,
    ),
    "question whether the task is complete": re.compile(
        r"\n\nAre you sure you want to mark the task as complete\? .*\Z", re.DOTALL
    ),
    "complaint about the response": re.compile(
        r"\APrevious response had parsing errors:\n.*\Z", re.DOTALL
    ),
}
"""What Harbor's own agent writes into observations."""


def events_of_document(
    document: Document, place: str = "", *, has_start: bool = False
) -> Iterator[Event]:
    """The events in order. With `has_start`, the first message of the user is the start.

    `place` is the document's place in the record, if it is not the whole record.
    """
    subagents = _Subagents(document, place)
    for number, step in enumerate(document.steps):
        location = f"{place}steps[{number}]"
        if step.is_copied_context:
            yield Event(location, "left out", reason="copied context")
        elif step.source == "agent":
            yield from _of_agent(step, location, subagents)
        else:
            yield from _of_others(step, location, subagents, is_start=has_start)
            has_start = has_start and step.source != "user"
    yield from subagents.rest()


class _Subagents:
    """The embedded trajectories of a document; each is read once."""

    def __init__(self, document: Document, place: str) -> None:
        embedded = enumerate(document.subagent_trajectories or [])
        places = {
            f"{place}subagent_trajectories[{number}].": subagent for number, subagent in embedded
        }
        self._documents = {
            subagent.trajectory_id: (path, subagent) for path, subagent in places.items()
        }
        self._places = dict.fromkeys(places)

    def read(self, refs: Sequence[SubagentRef], place: str) -> Iterator[Event]:
        """The events of the sub-agents that a result names."""
        yield Event(place, "left out", reason="report of a sub-agent")
        for ref in refs:
            path, document = self._documents.get(ref.trajectory_id or "", ("", None))
            if document is None:
                yield Event(place, "left out", reason="sub-agent whose trajectory is elsewhere")
            elif path in self._places:
                del self._places[path]
                yield from events_of_document(document, path)

    def rest(self) -> Iterator[Event]:
        """The sub-agents that no result names; the time of their actions is unknown."""
        for place in self._places:
            yield Event(place.rstrip("."), "left out", reason="sub-agent that no step names")


def _of_others(step: Step, place: str, subagents: _Subagents, *, is_start: bool) -> Iterator[Event]:
    text, parts = text_of(step.message, place)
    if is_start and step.source == "user":
        yield Event(place, "start", text)
    else:
        yield Event(place, "left out", text, reason=f"message of the {step.source}")
    yield from parts
    for number, result in enumerate(step.results):
        location = _result(place, number)
        if result.subagent_trajectory_ref:
            yield from subagents.read(result.subagent_trajectory_ref, location)
        else:
            yield Event(location, "left out", reason=f"result of a step of the {step.source}")


def _of_agent(step: Step, place: str, subagents: _Subagents) -> Iterator[Event]:
    text, parts = text_of(step.message, place)
    time = step.timestamp or ""
    yield from parts
    if step.reasoning_content:
        yield Event(place, "left out", step.reasoning_content, reason="what the agent thought")
    if not step.tool_calls and any(result.is_of_world for result in step.results):
        yield Event(place, "action", action=Action(text), time=time)
    elif text.strip():
        yield Event(place, "left out", text, reason="what the agent wrote beside its calls")
    yield from _actions(step, place)
    for number, result in enumerate(step.results):
        if not result.subagent_trajectory_ref:
            yield from _observation(result, _result(place, number), time)
    for number, result in enumerate(step.results):
        if result.subagent_trajectory_ref:
            yield from subagents.read(result.subagent_trajectory_ref, _result(place, number))


def _actions(step: Step, place: str) -> Iterator[Event]:
    delegated = {result.source_call_id for result in step.results if result.subagent_trajectory_ref}
    joined = _join_calls(step, delegated)
    time = step.timestamp or ""
    for number, call in enumerate(step.tool_calls or []):
        location = f"{place}.tool_calls[{number}]"
        if call.tool_call_id in delegated:
            yield Event(location, "left out", reason="call of a sub-agent")
        elif call not in joined:
            yield Event(location, "action", action=_action(call), call=call.tool_call_id, time=time)
    if joined:
        calls = tuple(part for call in joined for part in _action(call).calls)
        yield Event(f"{place}.tool_calls", "action", action=Action("", calls), time=time)


def _join_calls(step: Step, delegated: Container[str | None]) -> list[ToolCall]:
    """Joins calls that share one result into one action."""
    calls = [call for call in step.tool_calls or [] if call.tool_call_id not in delegated]
    ids = {call.tool_call_id for call in calls}
    result_ids = [result.source_call_id for result in step.results if result.is_of_world]
    open_calls = [call for call in calls if call.tool_call_id not in result_ids]
    has_one_result = len([result_id for result_id in result_ids if result_id not in ids]) == 1
    can_join = len(open_calls) > 1 and all(_action(call).calls for call in open_calls)
    return open_calls if has_one_result and can_join else []


def _action(call: ToolCall) -> Action:
    function = Function(name=call.function_name, arguments=call.arguments)
    return action_of(FunctionCall(function=function))


def _observation(result: Result, place: str, time: str) -> Iterator[Event]:
    if result.content is None:
        yield Event(place, "left out", reason="result without content")
        return
    text, parts = text_of(result.content, place)
    yield from parts
    spans = spans_of(text, _MARKS)
    yield Event(
        place,
        "observation",
        text,
        call=result.source_call_id or "",
        time=time,
        spans=spans,
        is_cut=any(span.what == _CUT for span in spans),
    )


def _result(place: str, number: int) -> str:
    return f"{place}.observation.results[{number}]"

"""Assembles the events of an episode, from any form of log, into a trajectory.

An importer translates a record into events, in the record's order. This module pairs actions and
observations into turns, by one rule for all forms, and counts the other events by reason.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from agentworld.domains.base import Action, ActionError, domain_of
from agentworld.records.tool import Tools
from agentworld.records.trajectory import Span, Trajectory, Turn

NO_RESULT = "call without a result"
NO_CALL = "result without a call"
PAIRED_BY_ORDER = "result paired by order, for its id names no call"
CUT = "result that is cut"

Role = Literal["action", "observation", "start", "left out"]


class Event(NamedTuple):
    """One part of a record."""

    place: str
    """Its place in the record, such as `messages[6]`."""
    role: Role
    """An agent's action, an observation, the start, or left out."""
    text: str = ""
    action: Action | None = None
    """The action, if it is more than the text."""
    call: str = ""
    """The id of a call and of its result, if the record has one."""
    time: str = ""
    """The time, in the record's form."""
    spans: tuple[Span, ...] = ()
    """Parts of the text that the harness wrote, and not the world."""
    is_cut: bool = False
    """The text is truncated."""
    reason: str = ""
    """Why the event is left out."""


class Episode(NamedTuple):
    """The events and labels of one episode."""

    source: str
    """The name of the agent or log."""
    events: Sequence[Event]
    tools: Tools = ()
    task_id: str = ""
    """The id that all trials of a task share."""
    licence: str = ""


class Pair(NamedTuple):
    """An action and its observation, by their places among the events."""

    action: int
    observation: int


class AssembledEpisode(NamedTuple):
    """An episode as a trajectory."""

    trajectory: Trajectory
    pairs: Sequence[Pair]
    """One for each turn."""
    notes: Counter[str]
    """The number of events that became no turn, by reason."""


def assemble(episode: Episode, domain: str) -> AssembledEpisode:
    """Makes the trajectory of an episode; a call that its domain cannot render is left out."""
    notes = Counter(event.reason for event in episode.events if event.role == "left out")
    pairs, turns = [], []
    for pair in _pairs(episode.events, notes):
        try:
            turns.append(_turn(episode.events, pair, domain))
        except ActionError:
            notes["call whose arguments are no JSON"] += 1
        else:
            pairs.append(pair)
    notes[CUT] += sum(turn.is_cut for turn in turns)
    trajectory = Trajectory(
        domain=domain,
        source=episode.source,
        task_id=episode.task_id,
        licence=episode.licence,
        initial_state="\n\n".join(event.text for event in episode.events if event.role == "start"),
        tools=episode.tools,
        turns=tuple(turns),
    )
    return AssembledEpisode(trajectory, pairs, +notes)


def _turn(events: Sequence[Event], pair: Pair, domain: str) -> Turn:
    action, observation = events[pair.action], events[pair.observation]
    return Turn(
        action=domain_of(domain).render_action(action.action or Action(action.text)),
        observation=observation.text,
        time=observation.time or action.time,
        spans=observation.spans,
        is_cut=observation.is_cut,
    )


def _pairs(events: Sequence[Event], notes: Counter[str]) -> list[Pair]:
    """The pairs of actions and observations, in the order of the actions."""
    pairs, open_calls = list[Pair](), list[int]()
    for actions, observations in _exchanges(events):
        open_calls += actions
        pairs += _pairs_of(events, open_calls, actions, observations, notes)
    notes[NO_RESULT] += len(open_calls)
    return sorted(pairs)


def _exchanges(events: Sequence[Event]) -> Iterator[tuple[list[int], list[int]]]:
    """Runs of actions, each with the run of observations after it."""
    places = [number for number, event in enumerate(events) if event.role in _TURN]
    actions = list[int]()
    for role, group in groupby(places, key=lambda number: events[number].role):
        if role == "action":
            actions = list(group)
        else:
            yield actions, list(group)
            actions = []
    if actions:
        yield actions, []


_TURN = ("action", "observation")


def _pairs_of(
    events: Sequence[Event],
    open_calls: list[int],
    actions: Sequence[int],
    observations: Sequence[int],
    notes: Counter[str],
) -> Iterator[Pair]:
    """Pairs each observation with an open call, and closes the call.

    Ids decide; if two open calls have the same id, the call of this exchange is taken. Ids without
    an open call are ignored: if equal numbers of calls and results of the exchange remain, they are
    paired in order.
    """
    rest = []
    for observation in observations:
        call = events[observation].call
        candidates = sorted(open_calls, key=lambda number: (number not in actions, number))
        match = next(
            (candidate for candidate in candidates if call and events[candidate].call == call), None
        )
        if match is None:
            rest.append(observation)
        else:
            open_calls.remove(match)
            yield Pair(match, observation)
    left = [action for action in actions if action in open_calls]
    has_ids = any(events[observation].call for observation in rest)
    if has_ids and len(left) != len(rest):
        notes[NO_CALL] += len(rest)
        return
    for action, observation in zip(left, rest, strict=False):
        open_calls.remove(action)
        yield Pair(action, observation)
    notes[PAIRED_BY_ORDER] += len(left) if has_ids else 0
    notes[NO_CALL] += max(0, len(rest) - len(left))

"""The matching of actions and observations, in any form of log."""

import pytest

from agentworld.data.importers.events import (
    CUT,
    NO_CALL,
    NO_RESULT,
    PAIRED_BY_ORDER,
    Episode,
    Event,
    assemble,
)
from agentworld.domains.base import Action, Call


def event(text):
    """`a:1` is the call with id 1, `o:1` its result; `a` and `o` have no id; texts are unique."""
    kind, _, call = text.partition(":")
    role = {"a": "action", "o": "observation", "s": "start", "x": "left out"}[kind[0]]
    return Event(text, role, kind, call=call, reason="a reason" if role == "left out" else "")


def assemble_texts(*texts):
    record = assemble(Episode("log", [event(text) for text in texts]), "text")
    turns = [(turn.action, turn.observation) for turn in record.trajectory.turns]
    assert [(texts[a].partition(":")[0], texts[o].partition(":")[0]) for a, o in record.pairs] == (
        turns
    )
    return turns, dict(record.notes)


@pytest.mark.parametrize(
    ("texts", "turns", "notes"),
    [
        ("a1 o1 a2 o2", "a1o1 a2o2", {}),
        ("a1:1 a2:2 o2:2 o1:1", "a1o1 a2o2", {}),
        # One id names two calls: each result belongs to the call before it.
        ("a1:1 o1:1 a2:1 o2:1", "a1o1 a2o2", {}),
        ("a1:1 a2:1 o2:1", "a1o2", {NO_RESULT: 1}),
        ("a1:1 x o1:1", "a1o1", {"a reason": 1}),
        ("a1:1 o0:0 a2:1 o2:1", "a1o0 a2o2", {PAIRED_BY_ORDER: 1}),
        # A result may come after later calls.
        ("a1:1 a2:2 o2:2 a3:3 o3:3 o1:1", "a1o1 a2o2 a3o3", {}),
        # Ids that name no call: by order, where as many are left.
        ("a1:1 a2:2 o1:8 o2:9", "a1o1 a2o2", {PAIRED_BY_ORDER: 2}),
        ("a1:1 a2:2 o2:2 o1:9", "a1o1 a2o2", {PAIRED_BY_ORDER: 1}),
        ("a1:1 a2:2 o1:9", "", {NO_RESULT: 2, NO_CALL: 1}),
        ("a1:1 o1:1 o2:1", "a1o1", {NO_CALL: 1}),
        ("o0 a1 o1", "a1o1", {NO_CALL: 1}),
        ("a1 o1 o2", "a1o1", {NO_CALL: 1}),
        ("a1 a2 o1", "a1o1", {NO_RESULT: 1}),
        ("a1 o1 a2", "a1o1", {NO_RESULT: 1}),
        ("s", "", {}),
        ("", "", {}),
    ],
)
def test_a_result_is_paired_by_id_then_by_order_and_the_rest_is_counted(texts, turns, notes):
    pairs, counts = assemble_texts(*texts.split())
    assert pairs == [(pair[:2], pair[2:]) for pair in turns.split()]
    assert counts == notes


def test_a_trajectory_keeps_the_source_task_license_and_start_of_its_episode():
    episode = Episode("gpt", [event("s1"), event("a"), event("s2")], task_id="7", licence="MIT")
    trajectory = assemble(episode, "text").trajectory
    assert (trajectory.source, trajectory.task_id, trajectory.licence) == ("gpt", "7", "MIT")
    assert trajectory.initial_state == "s1\n\ns2"


def test_calls_are_rendered_by_the_domain_and_non_json_calls_are_counted():
    calls = [Call("f", {"b": 1, "a": 2}), Call("g", {"x": float("nan")})]
    events = []
    for call in calls:
        events += [Event("p", "action", action=Action("", (call,))), Event("p", "observation", "o")]
    record = assemble(Episode("log", events), "text")
    assert [turn.action for turn in record.trajectory.turns] == [
        '{"name":"f","arguments":{"a":2,"b":1}}'
    ]
    assert dict(record.notes) == {"call whose arguments are no JSON": 1}


def test_cut_results_are_counted_and_times_are_kept():
    events = [
        Event("p", "action", "a", time="1"),
        Event("p", "observation", "o", is_cut=True, time="2"),
        Event("p", "action", "b", time="3"),
        Event("p", "observation", "o"),
    ]
    record = assemble(Episode("log", events), "text")
    assert [(turn.time, turn.is_cut) for turn in record.trajectory.turns] == [
        ("2", True),
        ("3", False),
    ]
    assert dict(record.notes) == {CUT: 1}

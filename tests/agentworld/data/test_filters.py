from collections import Counter

import pytest

from agentworld.data.filters import filter_trajectories
from agentworld.errors import InputError
from make import records

UNKNOWN_COMMAND = ("kolu tane", "bash: kolu: command not found\n[127] ~")
LS = ("ls", "rimo.txt\n[0] ~")


def apply(*trajectories, min_turns=2):
    removed = Counter()
    return list(filter_trajectories(trajectories, min_turns, removed)), +removed


def actions(item):
    return [turn.action for turn in item.trajectory.turns]


def test_a_short_trajectory_is_dropped_and_counted():
    assert apply(records.trajectory(LS)) == ([], {"short trajectory": 1})


def test_turns_without_an_action_are_removed():
    (item,), removed = apply(records.trajectory(LS, ("", "[0] ~"), (" \n", "[0] ~"), ("pwd", "/")))
    assert actions(item) == ["ls", "pwd"]
    assert removed == {"empty action": 2}


def test_a_trajectory_that_is_short_without_its_empty_turns_is_dropped():
    items, removed = apply(records.trajectory(LS, ("", "[0] ~")))
    assert not items
    assert removed == {"empty action": 1, "short trajectory": 1}


def test_immediate_retries_of_an_unknown_command_are_removed():
    (item,), removed = apply(
        records.trajectory(UNKNOWN_COMMAND, UNKNOWN_COMMAND, UNKNOWN_COMMAND, LS)
    )
    assert actions(item) == ["kolu tane", "ls"]
    assert removed == {"turn without effect": 2}


@pytest.mark.parametrize(
    "turns", [(LS, LS), (UNKNOWN_COMMAND, LS, UNKNOWN_COMMAND)], ids=["known", "later"]
)
def test_repeats_other_than_immediate_retries_of_unknown_commands_are_kept(turns):
    (item,), removed = apply(records.trajectory(*turns))
    assert len(item.trajectory.turns) == len(turns)
    assert not removed


def test_a_filtered_trajectory_keeps_the_digest_of_the_recorded_trajectory():
    trajectory = records.trajectory(LS, ("", "[0] ~"), ("pwd", "/"))
    ((digest, _),), _ = apply(trajectory)
    assert digest == trajectory.digest


def test_only_empty_actions_and_retried_failures_are_removed_from_a_text_log():
    turn = ("next", "page")
    turns = (turn, turn, UNKNOWN_COMMAND, UNKNOWN_COMMAND, ("", ""))
    (item,), removed = apply(records.trajectory(*turns, domain="text"))
    assert actions(item) == ["next", "next", "kolu tane"]
    assert removed == {"empty action": 1, "turn without effect": 1}


def test_a_log_of_screens_keeps_only_turns_that_change_the_screen():
    turns = ("open", "[1] Shop\n [2] Buy"), ("wait", "[1] Shop\n[2] Buy "), ("tap 2", "[1] Paid")
    (item,), removed = apply(records.trajectory(*turns, domain="screen"))
    assert actions(item) == ["open", "tap 2"]
    assert removed == {"turn without effect": 1}


def test_an_unknown_domain_is_refused():
    with pytest.raises(InputError, match="no domain 'web' here; there is .*shell"):
        apply(records.trajectory(domain="web"))

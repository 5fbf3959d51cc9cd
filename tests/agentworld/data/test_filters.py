from collections import Counter

import pytest

from agentworld.data.filters import filter_trajectories
from agentworld.errors import InputError
from make import records

UNKNOWN = ("kolu tane", "bash: kolu: command not found\n[127] ~")
LS = ("ls", "rimo.txt\n[0] ~")


def passed(*trajectories, min_turns=2):
    removed = Counter()
    return list(filter_trajectories(trajectories, min_turns, removed)), +removed


def actions(kept):
    return [turn.action for turn in kept.trajectory.turns]


def test_a_short_trajectory_is_dropped_and_counted():
    assert passed(records.trajectory(LS)) == ([], {"short trajectory": 1})


def test_turns_without_an_action_are_removed():
    (kept,), removed = passed(records.trajectory(LS, ("", "[0] ~"), (" \n", "[0] ~"), ("pwd", "/")))
    assert actions(kept) == ["ls", "pwd"]
    assert removed == {"empty action": 2}


def test_a_trajectory_that_is_short_without_its_empty_turns_is_dropped():
    kept, removed = passed(records.trajectory(LS, ("", "[0] ~")))
    assert not kept
    assert removed == {"empty action": 1, "short trajectory": 1}


def test_immediate_retries_of_an_unknown_command_are_removed():
    (kept,), removed = passed(records.trajectory(UNKNOWN, UNKNOWN, UNKNOWN, LS))
    assert actions(kept) == ["kolu tane", "ls"]
    assert removed == {"turn without effect": 2}


@pytest.mark.parametrize("turns", [(LS, LS), (UNKNOWN, LS, UNKNOWN)], ids=["known", "later"])
def test_repeats_other_than_immediate_retries_of_unknown_commands_are_kept(turns):
    (kept,), removed = passed(records.trajectory(*turns))
    assert len(kept.trajectory.turns) == len(turns)
    assert not removed


def test_a_filtered_trajectory_keeps_the_digest_of_the_recorded_trajectory():
    recorded = records.trajectory(LS, ("", "[0] ~"), ("pwd", "/"))
    ((digest, _),), _ = passed(recorded)
    assert digest == recorded.digest


def test_only_empty_actions_and_retried_failures_are_removed_from_a_text_log():
    same = ("next", "page")
    turns = (same, same, UNKNOWN, UNKNOWN, ("", ""))
    (kept,), removed = passed(records.trajectory(*turns, domain="text"))
    assert actions(kept) == ["next", "next", "kolu tane"]
    assert removed == {"empty action": 1, "turn without effect": 1}


def test_a_log_of_screens_keeps_only_turns_that_change_the_screen():
    turns = ("open", "[1] Shop\n [2] Buy"), ("wait", "[1] Shop\n[2] Buy "), ("tap 2", "[1] Paid")
    (kept,), removed = passed(records.trajectory(*turns, domain="screen"))
    assert actions(kept) == ["open", "tap 2"]
    assert removed == {"turn without effect": 1}


def test_an_unknown_domain_is_refused():
    with pytest.raises(InputError, match="no domain 'web' here; there is .*shell"):
        passed(records.trajectory(domain="web"))

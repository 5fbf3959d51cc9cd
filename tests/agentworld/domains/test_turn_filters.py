from agentworld.domains.turn_filters import without_retries, without_unchanged
from agentworld.records.trajectory import Turn

A, B = (Turn(action=name, observation="error") for name in "ab")
GOOD = Turn(action="c", observation="done")


def retries(*turns):
    return without_retries(turns, lambda observation: observation == "error")


def test_a_cycle_of_failures_stands_once():
    assert retries(A, B, A, B, GOOD) == [True, True, False, False, True]


def test_what_succeeds_in_between_begins_a_new_run():
    assert retries(A, GOOD, A, GOOD) == [True, True, True, True]


def test_a_failure_that_changed_the_state_stays():
    before, after = (A.model_copy(update={"state": state}) for state in ("1 try", "2 tries"))
    assert retries(before, after, after) == [True, True, False]


def test_the_time_of_a_retry_does_not_count():
    later = A.model_copy(update={"time": "2026-01-02T03:04:05Z"})
    assert retries(A, later) == [True, False]


def test_a_screen_that_is_as_before_is_left_out():
    screens = ["home", "HOME", "shop", "home", "home"]
    turns = [Turn(action="tap", observation=screen) for screen in screens]
    assert without_unchanged(turns, str.lower) == [True, False, True, True, False]


def test_no_turns_are_no_turns():
    assert retries() == []
    assert without_unchanged([], str) == []

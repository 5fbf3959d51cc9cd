from agentworld.domains.turn_filters import without_retries, without_unchanged
from agentworld.records.trajectory import Turn

ERROR_A, ERROR_B = (Turn(action=name, observation="error") for name in "ab")
SUCCESS = Turn(action="c", observation="done")


def keep(*turns):
    return without_retries(turns, lambda observation: observation == "error")


def test_a_repeated_cycle_of_failures_is_kept_once():
    assert keep(ERROR_A, ERROR_B, ERROR_A, ERROR_B, SUCCESS) == [True, True, False, False, True]


def test_a_failure_after_a_success_is_kept():
    assert keep(ERROR_A, SUCCESS, ERROR_A, SUCCESS) == [True, True, True, True]


def test_a_failure_that_changed_the_state_is_kept():
    before, after = (ERROR_A.model_copy(update={"state": state}) for state in ("1 try", "2 tries"))
    assert keep(before, after, after) == [True, True, False]


def test_a_retry_at_another_time_is_dropped():
    later_turn = ERROR_A.model_copy(update={"time": "2026-01-02T03:04:05Z"})
    assert keep(ERROR_A, later_turn) == [True, False]


def test_an_unchanged_screen_is_dropped():
    screens = ["home", "HOME", "shop", "home", "home"]
    turns = [Turn(action="tap", observation=screen) for screen in screens]
    assert without_unchanged(turns, str.lower) == [True, False, True, True, False]


def test_an_empty_list_of_turns_stays_empty():
    assert keep() == []
    assert without_unchanged([], str) == []

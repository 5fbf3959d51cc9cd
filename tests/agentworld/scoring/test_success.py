import pytest

from agentworld.errors import InputError
from agentworld.records.task import SuccessRule
from agentworld.scoring.success import check_rule, judge, outcome
from make import records


@pytest.mark.parametrize(
    ("action", "observation", "verdict"),
    [
        ("cat rimo.txt", "besa\n[0] ~", None),
        ("echo besa", "besa\n[0] ~", True),
        ("echo tane", "tane\n[0] ~", False),
        ("echo besa", "besa\nbesa\n[0] ~", False),
        ("echo besa", "besa", False),
        ("echo besa", "[0] ~", False),
        ("sudo echo besa", "besa\n[0] ~", None),
        ("echo besa\n", "besa\n[0] ~", None),
    ],
    ids=[
        "another action leaves it open",
        "the output it asked for",
        "another output",
        "more than it asked for",
        "no prompt line",
        "no output",
        "the whole action must match",
        "a line break is a part of the action",
    ],
)
def test_only_the_closing_action_with_the_very_output_succeeds(action, observation, verdict):
    assert judge(records.task().success, action, observation) is verdict


def test_an_output_of_several_lines_is_compared_whole():
    rule = SuccessRule(closing="cat a", output="besa\ntane")
    assert judge(rule, "cat a", "besa\ntane\n[0] ~") is True


def test_a_closed_task_is_done_and_rewarded():
    assert outcome(records.task(), 3, 1, "echo besa", "besa\n[0] ~") == (1.0, True, False)
    assert outcome(records.task(), 3, 1, "echo no", "no\n[0] ~") == (0.0, True, False)


def test_a_task_closed_at_its_last_turn_is_not_truncated():
    assert outcome(records.task(), 3, 3, "echo besa", "besa\n[0] ~") == (1.0, True, False)


def test_a_task_open_at_its_last_turn_has_failed():
    assert outcome(records.task(), 3, 2, "ls", "[0] ~") == (None, False, False)
    assert outcome(records.task(), 3, 3, "ls", "[0] ~") == (0.0, True, True)


def test_without_a_task_there_is_no_reward():
    assert outcome(None, 2, 1, "echo besa", "besa\n[0] ~") == (None, False, False)
    assert outcome(None, 2, 2, "echo besa", "besa\n[0] ~") == (None, True, True)


def test_a_closing_pattern_that_is_none_is_refused():
    with pytest.raises(InputError, match="no regular expression"):
        check_rule(SuccessRule(closing="echo (", output=""))


def test_a_closing_pattern_that_takes_for_ever_is_stopped():
    rule = SuccessRule(closing=r"(x|x)*(x|x)*(x|x)*(.)\4y|(a?){40}a{40}", output="")
    with pytest.raises(InputError, match="takes more than"):
        judge(rule, "x" * 400, "[0] ~")

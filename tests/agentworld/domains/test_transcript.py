import pytest

from agentworld.domains.transcript import check_rule, closes
from agentworld.errors import InputError
from agentworld.records.task import SuccessRule


@pytest.mark.parametrize(
    ("action", "is_closing"), [("echo besa", True), ("echo", False), ("sudo echo besa", False)]
)
def test_the_closing_pattern_matches_the_whole_action(action, is_closing):
    assert closes(SuccessRule(closing="echo .+", output=""), action) is is_closing


def test_an_invalid_closing_pattern_is_refused():
    with pytest.raises(InputError, match="no regular expression"):
        check_rule(SuccessRule(closing="echo (", output=""))


def test_a_valid_closing_pattern_is_accepted():
    rule = SuccessRule(closing="echo (a|b)", output="")
    check_rule(rule)
    assert closes(rule, "echo a")


@pytest.mark.compute
def test_a_closing_pattern_that_backtracks_is_stopped():
    rule = SuccessRule(closing=r"(x|x)*(x|x)*(x|x)*(.)\4y|(a?){40}a{40}", output="")
    with pytest.raises(InputError, match="takes more than"):
        closes(rule, "x" * 400)

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


@pytest.mark.parametrize("closing", ["(?L)(?u)a", "(" * 2000 + ")" * 2000], ids=["flags", "nested"])
def test_a_closing_pattern_that_cannot_be_compiled_is_refused(closing):
    rule = SuccessRule(closing=closing, output="")
    with pytest.raises(InputError, match="no regular expression"):
        check_rule(rule)
    with pytest.raises(InputError, match="no regular expression"):
        closes(rule, "a")


def test_a_closing_pattern_has_a_longest_length():
    check_rule(SuccessRule(closing="a" * 4096, output=""))
    with pytest.raises(InputError, match="has 4097 characters; shorten it to at most 4096"):
        check_rule(SuccessRule(closing="a" * 4097, output=""))


def test_a_valid_closing_pattern_is_accepted():
    rule = SuccessRule(closing="echo (a|b)", output="")
    check_rule(rule)
    assert closes(rule, "echo a")


@pytest.mark.compute
def test_a_closing_pattern_that_backtracks_is_stopped():
    rule = SuccessRule(closing=r"(x|x)*(x|x)*(x|x)*(.)\4y|(a?){40}a{40}", output="")
    with pytest.raises(InputError, match="takes more than"):
        closes(rule, "x" * 400)

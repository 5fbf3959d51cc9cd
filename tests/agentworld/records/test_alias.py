import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.episode import new_name
from agentworld.records.statements.alias import AliasChange, gets_canary
from make import records

NAMES = st.text("abz019.-", max_size=20)


@given(NAMES, NAMES, st.integers(0, 99))
def test_a_run_keeps_its_canary_when_told_again_and_while_the_part_grows(alias, run, percent):
    had = gets_canary(alias, run, percent)
    assert gets_canary(alias, run, percent) == had
    assert gets_canary(alias, run, percent + 1) >= had


@given(NAMES, NAMES)
def test_no_run_is_of_a_part_of_nothing_and_each_of_the_whole(alias, run):
    assert not gets_canary(alias, run, 0)
    assert gets_canary(alias, run, 100)


@pytest.mark.parametrize("percent", [1, 10, 50, 99])
@pytest.mark.parametrize("name", [lambda number: f"run-{number}", lambda _number: new_name()])
def test_a_canary_gets_its_part_of_many_runs(percent, name):
    num_runs = 10_000
    tried = sum(gets_canary("stable", name(number), percent) for number in range(num_runs))
    assert abs(tried / num_runs - percent / 100) < 0.025  # five standard deviations of a half


def test_another_alias_tries_its_canary_with_other_runs():
    runs = [f"run-{number}" for number in range(1000)]
    tried = [{run for run in runs if gets_canary(alias, run, 50)} for alias in ("stable", "new")]
    assert 150 < len(tried[0] & tried[1]) < 350


@pytest.mark.parametrize(
    ("request_of_last", "asked_by", "repeats"),
    [("uid/3", "uid/3", True), ("uid/3", None, False), (None, "uid/3", True), (None, None, True)],
)
def test_an_end_says_nothing_new_after_an_end_unless_a_command_follows_an_object(
    request_of_last, asked_by, repeats
):
    first = AliasChange(alias="stable", simulator=records.digest("one"), set_by="ada", at="then")
    last = first.end("ada", "then", request=request_of_last)
    assert last.end("bob", "now", request=asked_by).repeats(last) == repeats
    assert not first.end("bob", "now", request=asked_by).repeats(first)


def test_which_runs_get_a_canary_is_the_same_in_every_release():
    tried = [run for run in map(str, range(40)) if gets_canary("stable", run, 10)]
    assert tried == ["0", "24", "31"]

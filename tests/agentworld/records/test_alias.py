import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.episode import new_name
from agentworld.records.statements.alias import AliasChange, gets_canary
from make import records

NAMES = st.text("abz019.-", max_size=20)


@given(NAMES, NAMES, st.integers(0, 99))
def test_a_run_keeps_its_canary_on_a_retry_and_when_the_percentage_grows(alias, run, percent):
    is_canary = gets_canary(alias, run, percent)
    assert gets_canary(alias, run, percent) == is_canary
    assert gets_canary(alias, run, percent + 1) >= is_canary


@given(NAMES, NAMES)
def test_a_canary_of_0_percent_gets_no_run_and_of_100_percent_every_run(alias, run):
    assert not gets_canary(alias, run, 0)
    assert gets_canary(alias, run, 100)


@pytest.mark.parametrize("percent", [1, 10, 50, 99])
@pytest.mark.parametrize("new_run", [lambda number: f"run-{number}", lambda _number: new_name()])
def test_a_canary_gets_its_percentage_of_many_runs(percent, new_run):
    num_runs = 10_000
    count = sum(gets_canary("stable", new_run(number), percent) for number in range(num_runs))
    assert abs(count / num_runs - percent / 100) < 0.025  # five standard deviations of a half


def test_different_aliases_choose_different_runs_for_their_canaries():
    runs = [f"run-{number}" for number in range(1000)]
    canaries = [{run for run in runs if gets_canary(alias, run, 50)} for alias in ("stable", "new")]
    assert 150 < len(canaries[0] & canaries[1]) < 350


@pytest.mark.parametrize(
    ("last_request", "new_request", "is_repetition"),
    [("uid/3", "uid/3", True), ("uid/3", None, False), (None, "uid/3", True), (None, None, True)],
)
def test_ending_an_ended_alias_is_a_repetition_unless_a_command_follows_an_object(
    last_request, new_request, is_repetition
):
    first = AliasChange(alias="stable", simulator=records.digest("one"), set_by="ada", at="then")
    last = first.end("ada", "then", request=last_request)
    assert last.end("bob", "now", request=new_request).repeats(last) == is_repetition
    assert not first.end("bob", "now", request=new_request).repeats(first)


def test_the_runs_that_get_a_canary_are_stable_across_releases():
    canaries = [run for run in map(str, range(40)) if gets_canary("stable", run, 10)]
    assert canaries == ["0", "24", "31"]

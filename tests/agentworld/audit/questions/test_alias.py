from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.audit.questions.alias import audit_alias, moment
from agentworld.errors import InputError
from agentworld.records.statements.alias import AliasChange
from make import records

START = datetime(2026, 3, 1, tzinfo=UTC)


def history(*hours: float, ended: tuple[int, ...] = ()) -> list[AliasChange]:
    """A move at each of these hours, of which some took the name away."""
    return [
        AliasChange(
            alias="terminal",
            simulator=records.digest(str(number)),
            set_by="anna",
            at=(START + timedelta(hours=each)).isoformat(timespec="milliseconds"),
            ended=number in ended,
        )
        for number, each in enumerate(hours)
    ]


def test_a_name_means_what_its_newest_move_by_then_said():
    first, second = moves = history(1, 5)
    told = audit_alias("terminal", moves, START + timedelta(hours=3))
    assert (told.simulator, told.since, told.until) == (records.digest("0"), first, second)
    assert told.at == "2026-03-01T03:00:00+00:00"


def test_a_move_counts_from_its_own_moment_on():
    moves = history(1, 5)
    assert audit_alias("terminal", moves, START + timedelta(hours=5)).simulator == records.digest(
        "1"
    )


def test_before_anybody_gave_it_a_name_means_nothing():
    (first,) = moves = history(1)
    told = audit_alias("terminal", moves, START)
    assert (told.simulator, told.since, told.until) == (None, None, first)


def test_a_name_that_was_taken_away_means_nothing_and_says_by_whom():
    moves = history(1, 2, ended=(1,))
    told = audit_alias("terminal", moves, START + timedelta(hours=3))
    assert (told.simulator, told.since, told.until) == (None, moves[1], None)


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 60))
def test_it_is_what_somebody_who_watched_would_say(hours, at):
    moves = history(*sorted(hours))
    meant = None
    for hour, move in zip(sorted(hours), moves, strict=True):
        if hour <= at:
            meant = move.simulator
    assert audit_alias("terminal", moves, START + timedelta(hours=at)).simulator == meant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-03-01", START),
        ("2026-03-01T12:30", START + timedelta(hours=12.5)),
        ("2026-03-01T02:00+02:00", START),
        ("2026-03-01T00:00:00Z", START),
    ],
)
def test_a_moment_is_a_date_or_a_time(text, told):
    assert moment(text, datetime.now(UTC)) == told


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "03/01/2026"])
def test_what_is_no_moment_is_refused_with_an_example(text):
    with pytest.raises(InputError, match="is not a time; write it like 2026-03-01"):
        moment(text, datetime.now(UTC))


def test_nobody_knows_what_a_name_will_mean():
    with pytest.raises(InputError, match="2026-03-02 is in the future"):
        moment("2026-03-02", START)

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.audit.questions.alias import audit_alias, moment
from agentworld.errors import InputError
from agentworld.records.statements.alias import AliasChange
from make import records

START = datetime(2026, 3, 1, tzinfo=UTC)


def moves_at(*hours: float, ended: tuple[int, ...] = ()) -> list[AliasChange]:
    """A move at each of these hours; the moves numbered in `ended` end the alias."""
    return [
        AliasChange(
            alias="terminal",
            simulator=records.digest(str(number)),
            set_by="anna",
            at=(START + timedelta(hours=hour)).isoformat(timespec="milliseconds"),
            ended=number in ended,
        )
        for number, hour in enumerate(hours)
    ]


def test_an_alias_means_the_target_of_its_newest_move_by_that_time():
    first, second = moves = moves_at(1, 5)
    audit = audit_alias("terminal", moves, START + timedelta(hours=3))
    assert (audit.simulator, audit.since, audit.until) == (records.digest("0"), first, second)
    assert audit.at == "2026-03-01T03:00:00+00:00"


def test_an_alias_move_counts_from_its_own_time_on():
    moves = moves_at(1, 5)
    assert audit_alias("terminal", moves, START + timedelta(hours=5)).simulator == records.digest(
        "1"
    )


def test_an_alias_means_nothing_before_its_first_move():
    (first,) = moves = moves_at(1)
    audit = audit_alias("terminal", moves, START)
    assert (audit.simulator, audit.since, audit.until) == (None, None, first)


def test_an_ended_alias_means_nothing_and_the_audit_shows_the_ending_move():
    moves = moves_at(1, 2, ended=(1,))
    audit = audit_alias("terminal", moves, START + timedelta(hours=3))
    assert (audit.simulator, audit.since, audit.until) == (None, moves[1], None)


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 60))
def test_an_alias_audit_matches_a_replay_of_the_moves(hours, at):
    moves = moves_at(*sorted(hours))
    target = None
    for hour, move in zip(sorted(hours), moves, strict=True):
        if hour <= at:
            target = move.simulator
    assert audit_alias("terminal", moves, START + timedelta(hours=at)).simulator == target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01", START),
        ("2026-03-01T12:30", START + timedelta(hours=12.5)),
        ("2026-03-01T02:00+02:00", START),
        ("2026-03-01T00:00:00Z", START),
    ],
)
def test_an_audit_time_can_be_a_date_or_a_time(text, expected):
    assert moment(text, datetime.now(UTC)) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "03/01/2026"])
def test_an_invalid_time_is_rejected_with_an_example(text):
    with pytest.raises(InputError, match="is not a time; write it like 2026-03-01"):
        moment(text, datetime.now(UTC))


def test_a_future_time_is_rejected():
    with pytest.raises(InputError, match="2026-03-02 is in the future"):
        moment("2026-03-02", START)

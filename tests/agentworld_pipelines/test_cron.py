from datetime import UTC, datetime

import pytest

from agentworld.errors import InputError
from agentworld_pipelines.cron import Cron

SATURDAY = datetime(2026, 10, 31, 23, 59, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("* * * * *", (2026, 11, 1, 0, 0)),
        ("0 3 * * *", (2026, 11, 1, 3, 0)),
        ("*/20 5 * * *", (2026, 11, 1, 5, 0)),
        ("50/5 5 * * *", (2026, 11, 1, 5, 50)),
        ("0 3 * * mon-fri", (2026, 11, 2, 3, 0)),
        ("0 3 ? DEC *", (2026, 12, 1, 3, 0)),
        ("15,45 1-2 31 * *", (2026, 12, 31, 1, 15)),
        ("0 0 29 2 *", (2028, 2, 29, 0, 0)),
        ("0 0 15 * 1", (2026, 11, 2, 0, 0)),
        ("0 0 */15 * 1", (2026, 11, 16, 0, 0)),
        ("0 0 15,* * 1", (2026, 11, 2, 0, 0)),
    ],
)
def test_the_next_due_time_matches_the_scheduler(expression, due):
    assert Cron.parse(expression).next_after(SATURDAY) == datetime(*due, tzinfo=UTC)


def test_the_current_minute_is_not_the_next_due_time():
    at_three = datetime(2026, 1, 1, 3, 0, tzinfo=UTC)
    assert Cron.parse("0 3 * * *").next_after(at_three) == at_three.replace(day=2)


def test_the_expression_for_the_server_begins_with_seconds():
    assert Cron.parse(" 0  3 * * * ").with_seconds == "0 0 3 * * *"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "has 0 fields; give five"),
        ("0 3 * *", "has 4 fields"),
        ("0 0 3 * * *", "has 6 fields"),
        ("@daily", "has 1 fields"),
        ("60 3 * * *", "has the minute '60'; give numbers from 0 to 59"),
        ("0 24 * * *", "the hour '24'"),
        ("0 3 0 * *", "the day of the month '0'"),
        ("0 3 * 13 *", "the month '13'"),
        ("0 3 * * 7", "the day of the week '7'"),
        ("0 3 * * 5-1", "the day of the week '5-1'"),
        ("*/0 * * * *", "the minute '*/0'"),
        ("1, * * * *", "the minute ''"),
        ("-5 * * * *", "the minute '-5'"),
        ("٣ * * * *", "the minute"),
        ("1_0 * * * *", "the minute '1_0'"),
        ("*-5 * * * *", "the minute '*-5'"),
        ("0 0 31 2 *", "is never due"),
    ],
)
def test_an_invalid_expression_is_rejected_with_one_sentence(expression, words):
    with pytest.raises(InputError, match="the cron expression") as error:
        Cron.parse(expression)
    assert words in str(error.value)
    assert "\n" not in str(error.value)

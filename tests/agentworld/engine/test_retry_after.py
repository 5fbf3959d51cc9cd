import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.engine.retry_after import retry_after_seconds


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("-3", 0.0)])
def test_a_retry_after_in_seconds_is_parsed(value, seconds):
    assert retry_after_seconds(value) == seconds


def test_a_retry_after_date_is_parsed():
    assert retry_after_seconds(formatdate(time.time() + 30, usegmt=True)) == pytest.approx(
        30, abs=3
    )


@pytest.mark.parametrize("value", ["99999999", "61", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_retry_after_is_at_most_a_minute(value):
    assert retry_after_seconds(value) == 60


def test_a_retry_after_date_in_the_past_is_zero():
    assert retry_after_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0


@pytest.mark.parametrize("value", [None, "", "soon", "nan", "inf", "9" * 400, "21 Oct 99999"])
def test_an_invalid_retry_after_is_none(value):
    assert retry_after_seconds(value) is None


@pytest.mark.waits
@given(st.text() | st.from_regex(r"\w{3}, \d{1,5} \w{3} \d{1,6} \d+:\d+(:\d+)? [+-]?\w+"))
def test_any_retry_after_text_gives_a_valid_pause_or_none(value):
    seconds = retry_after_seconds(value)
    assert seconds is None or 0 <= seconds <= 60

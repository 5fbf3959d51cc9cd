import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.engine.retry_after import retry_after_seconds


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("-3", 0.0)])
def test_a_pause_may_be_given_in_seconds(value, seconds):
    assert retry_after_seconds(value) == seconds


def test_a_pause_may_be_given_as_the_date_of_its_end():
    assert retry_after_seconds(formatdate(time.time() + 30, usegmt=True)) == pytest.approx(
        30, abs=3
    )


@pytest.mark.parametrize("value", ["99999999", "61", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_pause_is_never_longer_than_a_minute(value):
    assert retry_after_seconds(value) == 60


def test_a_date_that_is_past_is_no_pause():
    assert retry_after_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0


@pytest.mark.parametrize("value", [None, "", "soon", "nan", "inf", "9" * 400, "21 Oct 99999"])
def test_what_is_neither_is_unknown(value):
    assert retry_after_seconds(value) is None


@pytest.mark.waits
@given(st.text() | st.from_regex(r"\w{3}, \d{1,5} \w{3} \d{1,6} \d+:\d+(:\d+)? [+-]?\w+"))
def test_whatever_a_server_writes_is_a_pause_or_unknown(value):
    seconds = retry_after_seconds(value)
    assert seconds is None or 0 <= seconds <= 60

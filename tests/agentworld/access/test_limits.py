import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentworld.access.limits import Bucket, Limits, Rates
from agentworld.errors import AccessError
from fakes.clock import Clock

RATE = st.integers(1, 10_000)
PASSING = st.lists(st.tuples(st.floats(0, 200), st.integers(0, 50)), max_size=20)
"""Seconds that pass, and how many come then."""


def admit(bucket, num_callers):
    """The number of admitted callers; each of them spends one unit."""
    num_admitted = 0
    for _ in range(num_callers):
        if bucket.wait_seconds == 0:
            bucket.spend(1)
            num_admitted += 1
    return num_admitted


@given(RATE, PASSING)
def test_a_bucket_never_admits_more_than_one_minutes_allowance_plus_the_refill(rate, passing):
    clock = Clock()
    bucket, start, num_admitted = Bucket(rate, clock), clock.now, 0
    for seconds, num_callers in passing:
        clock.now += seconds
        num_admitted += admit(bucket, num_callers)
        assert num_admitted <= rate + (clock.now - start) * rate / 60 + 1e-6


@pytest.mark.waits
@given(RATE)
def test_a_full_bucket_holds_exactly_one_minutes_allowance(rate):
    clock = Clock()
    bucket = Bucket(rate, clock)
    clock.now += 3_600
    assert admit(bucket, rate + 10) == rate


@given(RATE, st.integers(0, 10**9))
def test_a_caller_is_admitted_after_the_reported_wait_and_not_before(rate, spent):
    clock = Clock()
    bucket = Bucket(rate, clock)
    bucket.spend(spent)
    wait, start = bucket.wait_seconds, clock.now
    assert wait >= 0
    if wait:
        clock.now = start + wait * 0.999
        assert bucket.wait_seconds > 0
    clock.now = start + wait + 1e-3
    assert bucket.wait_seconds == 0


@given(RATE, st.lists(st.floats(0, 10), max_size=10))
def test_reading_a_bucket_often_does_not_change_its_refill(rate, passing):
    clock = Clock()
    polled_bucket, other_bucket = Bucket(rate, clock), Bucket(rate, clock)
    for bucket in (polled_bucket, other_bucket):
        bucket.spend(3 * rate)
    for seconds in passing:
        clock.now += seconds
        assert math.isfinite(polled_bucket.wait_seconds)
    assert polled_bucket.wait_seconds == pytest.approx(other_bucket.wait_seconds, abs=1e-6)


def test_a_bucket_is_not_refilled_while_the_clock_stands_still():
    bucket = Bucket(60, Clock())
    assert (admit(bucket, 100), bucket.wait_seconds) == (60, 1.0)


def test_tokens_used_beyond_the_allowance_delay_the_next_step():
    clock = Clock()
    rates = Rates(Limits(tokens_per_minute=600), clock)
    rates.take_step("acme")
    rates.charge(num_tokens=1_200, num_bytes=10**9)
    with pytest.raises(
        AccessError, match=r"tenant acme has used its tokens .* in 60\.1 s"
    ) as error:
        rates.take_step("acme")
    assert (error.value.kind, error.value.retryable) == ("limit", True)
    assert error.value.retry_after_seconds == pytest.approx(60.1)
    clock.now += 61
    rates.take_step("acme")


@pytest.mark.parametrize(
    ("limits", "rate"),
    [
        (Limits(steps_per_minute=1), "steps"),
        (Limits(tokens_per_minute=5), "tokens"),
        (Limits(bytes_per_minute=5), "bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_rate_limit_alone_refuses_a_step_and_names_the_rate(limits, rate):
    rates = Rates(limits, Clock())
    assert rates.is_bounded
    rates.take_step("acme")
    rates.charge(5, 5)
    with pytest.raises(AccessError, match=f"has used its {rate} "):
        rates.take_step("acme")


def test_a_refused_step_uses_no_allowance():
    clock = Clock()
    rates = Rates(Limits(steps_per_minute=60, tokens_per_minute=60), clock)
    rates.charge(600, 0)
    for _ in range(100):
        with pytest.raises(AccessError):
            rates.take_step("acme")
    clock.now += 600
    for _ in range(60):
        rates.take_step("acme")


def test_without_rate_limits_no_step_is_refused():
    rates = Rates(Limits(open_runs=1), Clock())
    assert not rates.is_bounded
    for _ in range(1_000):
        rates.take_step("acme")
        rates.charge(10**9, 10**9)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "many", 2**53])
def test_an_invalid_limit_is_rejected(limit):
    with pytest.raises(ValidationError):
        Limits(open_runs=limit)

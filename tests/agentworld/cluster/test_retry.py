"""Which responses are retried."""

import math
import time
from contextlib import nullcontext

import pytest

from agentworld.cluster.client import EXISTS
from agentworld.cluster.retry import ask_until
from agentworld.errors import ClusterError, UnknownPath

GONE, NOBODY, FORBIDDEN = 0, 401, 403


REFUSED = [(NOBODY, False), (FORBIDDEN, False), (EXISTS, True), (422, True)]


def asked(*statuses: int, until: float = math.inf, granted: bool = False) -> list[str]:
    """The log while the server fails, and then succeeds."""
    left, told = list(statuses), []

    def ask() -> str:
        if left:
            raise ClusterError("it is so", status=left.pop(0))
        return "found"

    assert ask_until(ask, until=until, every_seconds=0, report=told.append, granted=granted)
    return told


def test_one_that_is_gone_is_waited_for_and_that_is_told_once():
    assert asked(GONE, GONE, 503) == ["it is so; waiting for it"]


def test_what_was_allowed_before_is_waited_for():
    assert asked(GONE, NOBODY, FORBIDDEN, granted=True) == ["it is so; waiting for it"]


@pytest.mark.parametrize("known", [True, False])
def test_a_kind_that_was_known_before_is_waited_for(known):
    answers = [UnknownPath("404 page not found")]

    def ask() -> str:
        if answers:
            raise answers.pop()
        return "found"

    how = {"kind_is_known": known, "granted": not known}
    with nullcontext() if known else pytest.raises(UnknownPath):
        assert ask_until(ask, until=math.inf, every_seconds=0, report=print, **how)


@pytest.mark.parametrize(("status", "granted"), REFUSED)
def test_every_other_refusal_is_one(status, granted):
    with pytest.raises(ClusterError) as refused:
        asked(status, granted=granted)
    assert refused.value.status == status


@pytest.mark.parametrize("status", [GONE, FORBIDDEN])
def test_no_time_is_waited_for_longer_than_was_said(status):
    with pytest.raises(ClusterError):
        asked(status, until=time.monotonic(), granted=True)

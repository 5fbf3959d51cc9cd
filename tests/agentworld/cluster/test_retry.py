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


def test_an_unreachable_server_is_retried_and_reported_once():
    assert asked(GONE, GONE, 503) == ["it is so; waiting for it"]


def test_a_missing_permission_is_retried_if_granted_before():
    assert asked(GONE, NOBODY, FORBIDDEN, granted=True) == ["it is so; waiting for it"]


@pytest.mark.parametrize("known", [True, False])
def test_an_unknown_kind_is_retried_only_if_known_before(known):
    answers = [UnknownPath("404 page not found")]

    def ask() -> str:
        if answers:
            raise answers.pop()
        return "found"

    how = {"kind_is_known": known, "granted": not known}
    with nullcontext() if known else pytest.raises(UnknownPath):
        assert ask_until(ask, until=math.inf, every_seconds=0, report=print, **how)


@pytest.mark.parametrize(("status", "granted"), REFUSED)
def test_every_other_refusal_is_raised(status, granted):
    with pytest.raises(ClusterError) as refused:
        asked(status, granted=granted)
    assert refused.value.status == status


@pytest.mark.parametrize("status", [GONE, FORBIDDEN])
def test_retries_end_at_the_deadline(status):
    with pytest.raises(ClusterError):
        asked(status, until=time.monotonic(), granted=True)

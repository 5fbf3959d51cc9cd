"""Which responses are retried."""

import math
import time
from contextlib import nullcontext

import pytest

from agentworld.cluster.client import EXISTS
from agentworld.cluster.retry import ask_until
from agentworld.errors import ClusterError, UnknownPath

UNREACHABLE, UNAUTHORIZED, FORBIDDEN = 0, 401, 403


REFUSALS = [(UNAUTHORIZED, False), (FORBIDDEN, False), (EXISTS, True), (422, True)]


def log_of(*statuses: int, until: float = math.inf, granted: bool = False) -> list[str]:
    """The log of a request that fails with these statuses, and then succeeds."""
    remaining, log = list(statuses), []

    def ask() -> str:
        if remaining:
            raise ClusterError("it is so", status=remaining.pop(0))
        return "found"

    assert ask_until(ask, until=until, every_seconds=0, report=log.append, granted=granted)
    return log


def test_an_unreachable_server_is_retried_and_reported_once():
    assert log_of(UNREACHABLE, UNREACHABLE, 503) == ["it is so; waiting for it"]


def test_a_missing_permission_is_retried_if_granted_before():
    assert log_of(UNREACHABLE, UNAUTHORIZED, FORBIDDEN, granted=True) == [
        "it is so; waiting for it"
    ]


@pytest.mark.parametrize("is_known", [True, False])
def test_an_unknown_kind_is_retried_only_if_known_before(is_known):
    errors = [UnknownPath("404 page not found")]

    def ask() -> str:
        if errors:
            raise errors.pop()
        return "found"

    settings = {"kind_is_known": is_known, "granted": not is_known}
    with nullcontext() if is_known else pytest.raises(UnknownPath):
        assert ask_until(ask, until=math.inf, every_seconds=0, report=print, **settings)


@pytest.mark.parametrize(("status", "granted"), REFUSALS)
def test_every_other_refusal_is_raised(status, granted):
    with pytest.raises(ClusterError) as error:
        log_of(status, granted=granted)
    assert error.value.status == status


@pytest.mark.parametrize("status", [UNREACHABLE, FORBIDDEN])
def test_retries_end_at_the_deadline(status):
    with pytest.raises(ClusterError):
        log_of(status, until=time.monotonic(), granted=True)

"""Retries while an API server is unreachable."""

import time
from collections.abc import Callable
from typing import TypeVar

from agentworld.cluster.client import EXISTS
from agentworld.errors import ClusterError, UnknownPath

_NOT_ALLOWED = (401, 403)

_Answer = TypeVar("_Answer")


def ask_until(
    ask: Callable[[], _Answer],
    *,
    until: float,
    every_seconds: float,
    report: Callable[[str], None],
    kind_is_known: bool = False,
    granted: bool = False,
) -> _Answer:
    """Retries a call while the API server is unreachable, reported once; raises ClusterError.

    A restarting API server does not know custom resources, accounts and roles at first. So a 404
    for a kind that was known before (`kind_is_known`), and a 401 or 403 for a request that was
    allowed before (`granted`), are retried too. `until` is a monotonic time.
    """
    is_reported = False
    while True:
        try:
            return ask()
        except ClusterError as error:
            is_forgotten = kind_is_known and isinstance(error, UnknownPath)
            is_refused = granted and error.status in _NOT_ALLOWED
            is_transient = is_unreachable(error) or is_forgotten or is_refused
            if not is_transient or time.monotonic() >= until:
                raise
            if not is_reported:
                report(f"{error}; waiting for it")
                is_reported = True
        time.sleep(every_seconds)


def is_unreachable(error: ClusterError) -> bool:
    """Whether the API server did not answer; a conflict is an answer, even from a webhook."""
    return error.retryable and error.status != EXISTS

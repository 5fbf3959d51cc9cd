"""Waiting for an API server that is gone."""

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
    """Asks again while the API server is gone, which is told once; raises ClusterError.

    One that begins again answers before it knows custom resources, accounts and Roles. So a path
    that it does not know is waited for where it answered for this kind before (`kind_is_known`),
    and a refusal where it answered the same before (`granted`). `until` is a monotonic time.
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
    """Whether nobody answered; a conflict is an answer, by which a webhook refuses as well."""
    return error.retryable and error.status != EXISTS

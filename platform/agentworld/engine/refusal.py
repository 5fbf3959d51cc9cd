"""What a status other than 200 means: whether, and when, a retry can help."""

import re

import httpx

from agentworld.engine.retry_after import retry_after_seconds
from agentworld.errors import EngineError, EngineFailure

_TOO_LONG = re.compile("context.(length|size|window)", re.IGNORECASE)
_PASSING: tuple[EngineFailure, ...] = ("engine", "slow", "capacity")


def refusal(response: httpx.Response) -> EngineError:
    """The error behind a status: a server's own failure may pass, a refused request does not."""
    # Not response.text: its charset is whatever the server says, zlib for one.
    said = " ".join(response.content.decode(errors="replace").split())
    kind = _kind_of_status(response.status_code, said)
    passing = kind in _PASSING
    pause = response.headers.get("retry-after") if passing else None
    return EngineError(
        f"the engine answered with status {response.status_code}: {said[:200]!r}",
        kind=kind,
        retryable=passing,
        retry_after_seconds=retry_after_seconds(pause),
    )


def _kind_of_status(status: int, said: str) -> EngineFailure:
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return "capacity"
    if status in (httpx.codes.REQUEST_TIMEOUT, httpx.codes.GATEWAY_TIMEOUT):
        return "slow"
    if status >= 500:
        return "engine"
    return "context" if _TOO_LONG.search(said) else "refused"

"""Parses a server's error response: whether a retry can help, and when."""

import json
import re

import httpx
from pydantic import JsonValue

from agentworld.engine.retry_after import retry_after_seconds
from agentworld.errors import EngineError, EngineFailure

_TOO_LONG = re.compile("context.(length|size|window)", re.IGNORECASE)
_PASSING: tuple[EngineFailure, ...] = ("engine", "slow", "capacity")


def refusal(response: httpx.Response) -> EngineError:
    """The error for a status: a server's failure may be temporary, a refused request is not."""
    # not response.text, which uses any charset that the server names, such as zlib
    text = " ".join(response.content.decode(errors="replace").split())
    kind = _kind_of_status(response.status_code, text)
    passing = kind in _PASSING
    pause = response.headers.get("retry-after") if passing else None
    return EngineError(
        f"the engine answered with status {response.status_code}: {text[:200]!r}",
        kind=kind,
        retryable=passing,
        retry_after_seconds=retry_after_seconds(pause),
    )


def error_within(content: bytes) -> EngineError | None:
    """The error that a provider returns with a status of success."""
    if b'"error"' not in content:
        return None
    error = _error_of(content)
    if error is None:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    text = " ".join(json.dumps(error, ensure_ascii=False).split())
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    kind = _kind_of_status(status, text)
    if _TOO_LONG.search(text):
        kind = "context"
    return EngineError(
        f"the engine answered with an error under status 200: {text[:200]!r}",
        kind=kind,
        retryable=kind in _PASSING,
    )


def _error_of(content: bytes) -> JsonValue:
    """The error in today's form or in that of older servers; null if there is none."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    return answer if answer.get("object") == "error" else answer.get("error")


def _kind_of_status(status: int, text: str) -> EngineFailure:
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return "capacity"
    if status in (httpx.codes.REQUEST_TIMEOUT, httpx.codes.GATEWAY_TIMEOUT):
        return "slow"
    if status >= 500:
        return "engine"
    return "context" if _TOO_LONG.search(text) else "refused"

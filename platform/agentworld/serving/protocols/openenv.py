"""The WebSocket of the OpenEnv protocol (0.3 to 0.10): frames are answered in order.

The protocol's frames have no number, so a client cannot match an answer to its request. A client
that stopped waiting would take a late answer for the answer to its next request. So the service
gives up first: it answers with an `error` frame that the outcome of the step is unknown, and closes
the connection. To see the last step that was taken, the client connects again and resets with the
episode's id. Every failure is an `error` frame.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Generator
from typing import NamedTuple
from urllib.parse import parse_qs

from fastapi import FastAPI
from pydantic_core import from_json
from starlette.routing import WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from agentworld.access import Caller
from agentworld.errors import AccessError, AgentworldError, InputError
from agentworld.http.errors import problem_of
from agentworld.http.schemas import Problem
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols import openenv_http, openenv_openapi
from agentworld.serving.protocols.base import Protocol
from agentworld.serving.protocols.json_rpc import INTERNAL_ERROR, RpcError, refusal
from agentworld.serving.protocols.openenv_chain import Chain
from agentworld.serving.protocols.openenv_mcp import respond
from agentworld.serving.protocols.openenv_session import Fields, OpenEnvSession, to_frame
from agentworld.serving.protocols.time_limits import TimeLimit
from agentworld.serving.telemetry.metrics import Metrics

_MOST_BYTES = 4 * 2**20
_FRAME = f"a frame is a text of at most {_MOST_BYTES} bytes"
_SLOW_SECONDS = 0.5
_LOOK_SECONDS = 0.01
_RECHECK_SECONDS = 1.0  # the access file is checked as often
_decode = json.JSONDecoder().decode
_CODES = {
    "capacity": "CAPACITY_REACHED",
    "limit": "CAPACITY_REACHED",
    "input": "VALIDATION_ERROR",
    "unknown": "STEP_UNKNOWN",
}


class Conversation:
    """A connection that plays episodes of an open run, one after the other.

    It is a plain ASGI endpoint, because a framework's work for each message costs as much as a
    step.
    """

    __slots__ = (
        "_ask_again",
        "_authorized",
        "_checked_at",
        "_metrics",
        "_most_seconds",
        "_query",
        "_receive",
        "_run",
        "_send",
        "_time_limit",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["app"].state
        self._authorized = AuthorizedService(scope, "openenv")
        self._metrics: Metrics = state.app_state.episode_store.metrics
        self._ask_again: Callable[[], Awaitable[Caller]] = scope["ask_again"]
        self._checked_at = -math.inf
        self._run: str = scope["path_params"]["run"]
        self._query: str = scope["query_string"].decode("latin-1")
        self._most_seconds: float = state.answer_seconds
        self._receive = receive
        self._send = send

    def __await__(self) -> Generator[None, None, None]:
        return self._converse().__await__()

    async def _converse(self) -> None:
        await self._receive()  # the connection
        await self._send({"type": "websocket.accept"})
        # A separate task, because asyncio resumes a coroutine through all coroutines that await it:
        # for each step, through a dozen layers of middleware.
        await asyncio.create_task(self._answer_all())

    async def _answer_all(self) -> None:
        self._time_limit = TimeLimit(self._most_seconds)
        try:
            if session := await self._session():
                await self._answer_each(session)
        finally:
            self._time_limit.end()

    async def _session(self) -> OpenEnvSession | None:
        """A new session, or the one that the address names; null for an invalid name."""
        names = parse_qs(self._query).get("session_id")
        try:
            chain = Chain(self._authorized, self._run, names[-1]) if names else None
        except InputError as error:
            answer = self._failed(problem_of(error), "SESSION_ERROR")
            await self._send({"type": "websocket.send", "text": answer.text})
            await self._send({"type": "websocket.close"})
            return None
        return OpenEnvSession(self._authorized, self._run, chain)

    async def _answer_each(self, session: OpenEnvSession) -> None:
        message = await self._receive()
        while message["type"] == "websocket.receive":
            answer, next_message = await self._answer_in_time(session, message.get("text"))
            if answer is None:
                break
            if answer.problem:
                self._metrics.count_problem(answer.problem)
            await self._send({"type": "websocket.send", "text": answer.text})
            if answer.is_last:
                break
            del message, answer  # frees the texts while the connection waits
            message = await next_message if next_message else await self._receive()
        else:
            return  # the client disconnected
        await self._send({"type": "websocket.close"})

    async def _answer_in_time(
        self, session: OpenEnvSession, text: str | None
    ) -> tuple["_Answer | None", "asyncio.Future[Message] | None"]:
        """The answer, and for a slow one the pending receipt of the next message."""
        try:
            with self._time_limit:
                refusal = await self._check_caller() if self._is_due() else None
                answer = refusal or await self._answer(session, text)
        except TimeoutError:
            return self._unknown(f"it had no answer after {self._most_seconds:.0f} s"), None
        if answer is None or self._time_limit.seconds < _SLOW_SECONDS:
            return answer, None
        # A client of this protocol sends one request at a time; if it sends another, it gave up.
        next_message = asyncio.ensure_future(self._receive())
        await asyncio.wait({next_message}, timeout=_LOOK_SECONDS)
        if next_message.done() and next_message.result()["type"] == "websocket.receive":
            return self._unknown("another frame came before this one's answer"), None
        return answer, next_message

    def _is_due(self) -> bool:
        """Whether to check the caller again: a credential may be revoked during a connection."""
        return self._time_limit.since - self._checked_at >= _RECHECK_SECONDS

    async def _check_caller(self) -> "_Answer | None":
        """The error frame for a caller without access; null for one with access."""
        try:
            self._authorized.caller = await self._ask_again()
        except AccessError as error:
            return self._failed(problem_of(error))._replace(is_last=not error.retryable)
        self._checked_at = self._time_limit.since
        return None

    async def _answer(self, session: OpenEnvSession, text: str | None) -> "_Answer | None":
        """The answer to a frame; null if the client closes."""
        try:
            kind, data = _read(text)
            match kind:
                case "step":
                    return _Answer(to_frame("observation", await session.step(data)))
                case "reset":
                    return _Answer(to_frame("observation", await session.reset(data)))
                case "state":
                    return _Answer(to_frame("state", await session.state()))
                case "mcp":
                    response, error = await respond(self._authorized, self._run, data, session)
                    return _Answer(to_frame("mcp", response), _kind(error))
                case "close":
                    return None
            raise InputError(f"there is no frame of type {kind!r}; send reset, step, state or mcp")
        except AgentworldError as error:
            return self._failed(problem_of(error))

    def _unknown(self, reason: str) -> "_Answer":
        message = (
            f"it is unknown whether this step was taken: {reason}; connect again and reset with the"
            " episode_id to see the last step that was taken"
        )
        problem = Problem(kind="unknown", message=message, retryable=True)
        return self._failed(problem)._replace(is_last=True)

    def _failed(self, problem: Problem, code: str | None = None) -> "_Answer":
        code = code or _CODES.get(problem.kind, "EXECUTION_ERROR")
        return _Answer(to_frame("error", {**problem.model_dump(), "code": code}), problem.kind)


class ToolsConversation(Conversation):
    """The same for JSON-RPC without frames."""

    __slots__ = ()

    async def _answer(self, session: OpenEnvSession, text: str | None) -> "_Answer":
        if text is None or len(text) > _MOST_BYTES:
            return self._failed(problem_of(InputError(_FRAME)))
        response, error = await respond(self._authorized, self._run, text, session)
        return _Answer(json.dumps(response), _kind(error))

    def _failed(self, problem: Problem, code: str | None = None) -> "_Answer":  # noqa: ARG002
        response = refusal(RpcError(INTERNAL_ERROR, problem.message, problem.model_dump()))
        return _Answer(json.dumps(response), problem.kind)


ROUTES = (
    WebSocketRoute("/runs/{run}/ws", Conversation),
    WebSocketRoute("/runs/{run}/mcp", ToolsConversation),
)


class _Answer(NamedTuple):
    text: str
    problem: str | None = None
    """The kind of a failure."""
    is_last: bool = False
    """The connection is closed after this answer."""


def _kind(error: AgentworldError | None) -> str | None:
    return problem_of(error).kind if error else None


def _read(text: str | None) -> tuple[str, Fields]:
    """A frame's type and its data."""
    if text is None or len(text) > _MOST_BYTES:
        raise InputError(_FRAME)
    frame = _parse(text)
    if not isinstance(frame, dict) or not isinstance(frame.get("data", {}), dict):
        raise InputError("a frame is an object with a type and data")
    return str(frame.get("type")), frame.get("data", {})


def _parse(text: str) -> object:
    try:
        return from_json(text)  # in a third of json's time; it refuses lone surrogates
    except (ValueError, TypeError):
        pass
    try:
        return _decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the frame is not JSON: {error}") from error


def open_protocol(app: FastAPI) -> Protocol:
    """OpenEnv over sockets and HTTP."""
    return Protocol([*openenv_http.router.routes, *ROUTES, openenv_openapi.route(app)])

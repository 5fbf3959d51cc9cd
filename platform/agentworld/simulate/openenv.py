"""The OpenEnv wire (openenv-core 0.3): frames of a connection are answered in their order.

Nothing in a frame of that wire lets a client notice that an answer is another one's, or none: what
is no whole answer is always its `error` frame.
"""

import json
from collections.abc import Generator
from typing import NamedTuple

from pydantic import ValidationError
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from agentworld.errors import AgentworldError, InputError
from agentworld.records.base import first_problem
from agentworld.records.episode import EpisodeOpening, ResetResult, StepResult
from agentworld.simulate.failures import problem_of
from agentworld.simulate.schemas import Problem
from agentworld.simulate.service import SimulatorService
from agentworld.simulate.session import Request

_MOST_BYTES = 16 * 2**20
_written = json.JSONEncoder(separators=(",", ":")).encode
_CODES = {"capacity": "CAPACITY_REACHED", "input": "VALIDATION_ERROR"}


class Conversation:
    """One episode after the other, of an open run, until the client closes.

    An ASGI endpoint of its own: what a framework does for each message costs as much as a step.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._session = _Session(scope["app"].state.service, scope["path_params"]["run"])
        self._receive = receive
        self._send = send

    def __await__(self) -> Generator[None, None, None]:
        return self._converse().__await__()

    async def _converse(self) -> None:
        await self._receive()  # the connection
        await self._send({"type": "websocket.accept"})
        while (message := await self._receive())["type"] == "websocket.receive":
            answer = await self._session.answer(message.get("text"))
            if answer is None:
                await self._send({"type": "websocket.close"})
                return
            await self._send({"type": "websocket.send", "text": answer})


ROUTE = WebSocketRoute("/runs/{run}/ws", Conversation)


class _Frame(NamedTuple):
    kind: str
    data: dict[str, object]


class _Session:
    """The episode of a connection, and how many of its steps were answered."""

    def __init__(self, service: SimulatorService, run: str) -> None:
        self._service = service
        self._run = run
        self._episode: str | None = None
        self._taken = 0

    async def answer(self, text: str | None) -> str | None:
        """The frame for a frame; null where the client says good-bye."""
        try:
            frame = _read(text)
            match frame.kind:
                case "step":
                    return await self._step(frame.data)
                case "reset":
                    return await self._reset(frame.data)
                case "state":
                    return self._state()
                case "close":
                    return None
            raise InputError(f"there is no frame of type {frame.kind!r}; send reset, step or state")
        except AgentworldError as error:
            return _failed(problem_of(error))

    async def _reset(self, data: dict[str, object]) -> str:
        data.pop("episode_id", None)
        try:
            opening = EpisodeOpening.model_validate({**data, "run": self._run})
        except ValidationError as error:
            raise InputError(first_problem(error)) from error
        result = await self._service.reset(opening)
        self._episode, self._taken = result.episode, result.step
        return _begun(result)

    async def _step(self, data: dict[str, object]) -> str:
        action = data.get("action")
        if self._episode is None:
            raise InputError("no episode is open on this connection; reset first")
        if type(action) is not str or data.keys() - {"action", "metadata"}:
            raise InputError(f"a step has a text as its action, and nothing else, not {data!r:.80}")
        result = await self._service.step(self._episode, Request(self._taken + 1, action))
        self._taken = result.step
        return _shown(result)

    def _state(self) -> str:
        told = {"episode_id": self._episode, "step_count": self._taken, "run": self._run}
        return _frame("state", {**told, "simulator": self._service.digest})


def _read(text: str | None) -> _Frame:
    if text is None or len(text) > _MOST_BYTES:
        raise InputError(f"a frame is a text of at most {_MOST_BYTES} bytes")
    try:
        frame = json.loads(text)
    except ValueError as error:
        raise InputError(f"the frame is no JSON: {error}") from error
    if not isinstance(frame, dict) or not isinstance(frame.get("data", {}), dict):
        raise InputError("a frame is an object with a type and data")
    return _Frame(str(frame.get("type")), frame.get("data", {}))


def _begun(result: ResetResult) -> str:
    """The world has not spoken yet: what the agent reads first is its task."""
    told = {"text": result.instruction or "", "episode": result.episode, "step": result.step}
    observation = {**told, "simulator": result.simulator, "control": result.control}
    return _frame("observation", {"observation": observation, "reward": None, "done": False})


def _shown(result: StepResult) -> str:
    observation = {
        "text": result.observation,
        "simulator": result.simulator,
        "run": result.run,
        "episode": result.episode,
        "step": result.step,
        "truncated": result.truncated,
        "mean_logprob": result.mean_logprob,
        "agreement": result.agreement,
        "low_confidence": result.low_confidence,
    }
    told = {"reward": result.reward, "done": result.done}
    return _frame("observation", {"observation": observation, **told})


def _failed(problem: Problem) -> str:
    code = _CODES.get(problem.kind, "EXECUTION_ERROR")
    return _frame("error", {**problem.model_dump(), "code": code})


def _frame(kind: str, data: dict[str, object]) -> str:
    return _written({"type": kind, "data": data})

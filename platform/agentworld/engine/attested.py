"""That the server at an address is the engine that was pinned: asked before it is believed.

vLLM tells its version, its models and their context. `transformers serve` tells no version, lists
the models of a cache and not the one that it was started with, and is healthy whatever it serves,
so that there is nothing to ask it; what an endpoint is, nobody can verify.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agentworld.engine.base import BROKEN, Completion, Engine
from agentworld.engine.openai import OpenAIEngine
from agentworld.errors import EngineError
from agentworld.records.base import first_problem
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling, SimulatorManifest

_SECONDS_BETWEEN_CHECKS = 30.0
_LONGEST_CHECK_SECONDS = 10.0  # every request waits for it

# Routes that vLLM has only where it was started to let others change its weights.
_CHANGING = {
    "/collective_rpc": "development mode",
    "/update_weights": "development mode",
    "/v1/load_lora_adapter": "adapters that are loaded at run time",
}


class Attested:
    """An engine that is checked before the first request, after it failed, and now and then: what
    was started in its place may be another.
    """

    def __init__(
        self,
        engine: Engine,
        check: Callable[[], Coroutine[None, None, None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._check = check
        self._clock = clock
        self._checked: asyncio.Task[None] | None = None
        self._until = 0.0

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        seed: int | None = None,
        *,
        affinity: str = "",
    ) -> Completion:
        """The engine's answer; raises what the check raises where it is not the pinned one."""
        checked = self._current_check()
        try:
            await asyncio.shield(checked)  # others wait for it, whoever gives up
            return await self._engine.complete(messages, sampling, seed, affinity=affinity)
        except EngineError as error:
            if error.kind in BROKEN:
                self._forget(checked)
            raise

    async def close(self) -> None:
        """Lets go of the engine's connections."""
        await self._engine.close()

    def _current_check(self) -> asyncio.Task[None]:
        if self._checked is None or self._clock() >= self._until:
            self._checked = asyncio.create_task(self._check_in_time())
            self._checked.add_done_callback(self._forget_failed)
            self._until = self._clock() + _SECONDS_BETWEEN_CHECKS
        return self._checked

    async def _check_in_time(self) -> None:
        try:
            async with asyncio.timeout(_LONGEST_CHECK_SECONDS):
                await self._check()
        except TimeoutError as error:
            raise EngineError(
                f"an engine did not tell in {_LONGEST_CHECK_SECONDS:.0f} s what it is; try again",
                kind="slow",
            ) from error

    def _forget_failed(self, check: asyncio.Task[None]) -> None:
        """Whoever asks next has it checked anew, also where nobody waited for this one."""
        if check.cancelled() or check.exception():
            self._forget(check)

    def _forget(self, check: asyncio.Task[None]) -> None:
        if self._checked is check:
            self._checked = None


def attested(server: OpenAIEngine, manifest: SimulatorManifest, model: str) -> Engine:
    """The server, asked what it is where its kind can tell."""
    if manifest.engine.kind != "vllm":
        return server
    version = manifest.engine.version.rpartition(" ")[2]  # without the distribution's name
    return Attested(server, partial(_check_vllm, server, version, model, manifest.context_tokens))


class _Version(BaseModel):
    version: str


class _Model(BaseModel):
    id: str
    parent: str | None = None
    """Of an adapter, which has its context."""
    max_model_len: int | None = None


class _Models(BaseModel):
    data: list[_Model]


async def _check_vllm(server: OpenAIEngine, version: str, model: str, context_tokens: int) -> None:
    server_version = await _ask(server, "/version", _Version)
    if server_version.version != version:
        raise _another(server, f"is vLLM {server_version.version}", version)
    models = {card.id: card for card in (await _ask(server, "/v1/models", _Models)).data}
    if model not in models:
        raise _another(server, f"serves {sorted(models)}", repr(model))
    served = models[model]
    context = models.get(served.parent or "", served).max_model_len
    if context != context_tokens:
        raise _another(server, f"takes {context} tokens", str(context_tokens))
    for path, name in _CHANGING.items():
        if await server.knows(path):
            raise _another(server, f"has {name} ({path})", "an engine that nobody can change")


_Response = TypeVar("_Response", bound=BaseModel)


async def _ask(server: OpenAIEngine, path: str, kind: type[_Response]) -> _Response:
    try:
        return kind.model_validate_json(await server.read(path))
    except ValidationError as error:
        raise _silent(server, path, first_problem(error)) from error
    except EngineError as error:
        if error.kind in BROKEN:
            raise
        raise _silent(server, path, str(error)) from error


def _silent(server: OpenAIEngine, path: str, problem: str) -> EngineError:
    return EngineError(f"{server.name} does not tell at {path} what it is: {problem}")


def _another(server: OpenAIEngine, state: str, expected: str) -> EngineError:
    return EngineError(
        f"{server.name} {state} where {expected} is asked for; serve what the manifest pins, or pin"
        " anew",
        retryable=False,
    )

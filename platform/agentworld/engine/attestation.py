"""Checks that the server at an address is the pinned engine, before it is used. vLLM reports its
version, its models and their context length. `transformers serve` reports no version, lists the
models of a cache instead of the loaded one, and is healthy whatever it serves, so it cannot be
checked. A third-party endpoint cannot be checked either.
"""

from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agentworld.engine.base import BROKEN
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.replica import Check
from agentworld.errors import EngineError
from agentworld.records.base import first_problem
from agentworld.records.simulator import SimulatorManifest

# Routes that vLLM has only if it was started so that clients can change its weights.
_CHANGING = {
    "/collective_rpc": "development mode",
    "/update_weights": "development mode",
    "/v1/load_lora_adapter": "adapters that are loaded at run time",
}


def check_of(server: OpenAIEngine, manifest: SimulatorManifest, model: str) -> Check | None:
    """The check for a server; null if its kind cannot be checked."""
    if manifest.engine.kind != "vllm":
        return None
    version = manifest.engine.version.rpartition(" ")[2]  # without the distribution's name
    return partial(_check_vllm, server, version, model, manifest.context_tokens)


class _Version(BaseModel):
    version: str


class _Model(BaseModel):
    id: str
    parent: str | None = None
    """The base model of an adapter, whose entry has the context length."""
    max_model_len: int | None = None


class _Models(BaseModel):
    data: list[_Model]


async def _check_vllm(server: OpenAIEngine, version: str, model: str, context_tokens: int) -> None:
    server_version = await _ask(server, "/version", _Version)
    if server_version.version != version:
        raise _wrong_engine(server, f"is vLLM {server_version.version}", version)
    models = {card.id: card for card in (await _ask(server, "/v1/models", _Models)).data}
    if model not in models:
        raise _wrong_engine(server, f"serves {sorted(models)}", repr(model))
    served = models[model]
    context = models.get(served.parent or "", served).max_model_len
    if context != context_tokens:
        raise _wrong_engine(server, f"takes {context} tokens", str(context_tokens))
    for path, name in _CHANGING.items():
        if await server.has_route(path):
            raise _wrong_engine(
                server, f"has {name} ({path})", "an engine whose weights clients cannot change"
            )


_Response = TypeVar("_Response", bound=BaseModel)


async def _ask(server: OpenAIEngine, path: str, kind: type[_Response]) -> _Response:
    try:
        return kind.model_validate_json(await server.read(path))
    except ValidationError as error:
        raise _no_answer(server, path, first_problem(error)) from error
    except EngineError as error:
        if error.kind in BROKEN:
            raise
        raise _no_answer(server, path, str(error)) from error


def _no_answer(server: OpenAIEngine, path: str, problem: str) -> EngineError:
    return EngineError(f"{server.name} cannot be checked at {path}: {problem}")


def _wrong_engine(server: OpenAIEngine, state: str, expected: str) -> EngineError:
    return EngineError(
        f"{server.name} {state}, but {expected} is required; serve what the manifest pins, or pin"
        " again",
        retryable=False,
    )

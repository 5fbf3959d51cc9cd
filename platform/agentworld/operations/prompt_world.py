"""Pins a third-party endpoint with a system prompt as a simulator, which cannot be verified."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from agentworld.domains.base import domain_of
from agentworld.engine.base import CompletionRequest, Engine
from agentworld.errors import EngineError, InputError
from agentworld.pinning.manifest import pin_endpoint
from agentworld.pinning.seed_probe import prove_seeds
from agentworld.recipes import Recipe
from agentworld.records.garbled import redact
from agentworld.records.message import Message
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.serving.simulators.engines import Secrets, connect_engines
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore

_MODELS_OWN_END = ("cut-off", "unparsable")
_TIMEOUT_SECONDS = 120.0


def endpoint_at(url: str, model: str) -> Endpoint:
    """A third-party model at an address; raises InputError for an invalid address."""
    try:
        return Endpoint(url=url.rstrip("/").removesuffix("/v1"), model=model)
    except ValidationError:
        # not `from` the error, which quotes the address with its secrets
        raise InputError(
            f"{redact(url)} and {model!r} are not an endpoint; give https://HOST, without a name, a"
            " password or a query, and the model's name"
        ) from None


def prompt_world(recipe: Recipe, store: Path, endpoint: Endpoint) -> PinnedSimulator:
    """A simulator that has answered once; raises EngineError if the endpoint does not answer."""
    manifest = pin_endpoint(endpoint, recipe.simulate)
    connect = partial(
        connect_engines,
        manifest,
        [endpoint.url],
        endpoint.model,
        concurrency=recipe.engine.concurrency,
        timeout_seconds=_TIMEOUT_SECONDS,
        api_key=Secrets().engine_api_key.get_secret_value(),
    )
    asyncio.run(_ask_once(manifest, connect))
    prove_seeds(manifest, connect, recipe.engine.concurrency)
    return SimulatorStore(store).keep(manifest)


async def _ask_once(manifest: SimulatorManifest, connect: Callable[[], Engine]) -> None:
    """Raises EngineError without any answer; an unusable answer is the model's failure."""
    engine = connect()
    name, domain = next(iter(manifest.domains.items()))
    prompt = Message(role="system", content=domain.system_prompt)
    action = Message(role="user", content=domain_of(name).question(0).action)
    try:
        await engine.complete(CompletionRequest([prompt, action], manifest.sampling))
    except EngineError as error:
        if error.kind not in _MODELS_OWN_END:
            raise
    finally:
        await engine.close()

"""From addresses to one engine that the service can lean on.

Each replica is checked against the manifest, behind a circuit breaker of its own, all of them
behind one bound on what is under way, so that another engine is not believed, too much load is a
typed refusal and a dead replica is not asked.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.engine.admission import Admission
from agentworld.engine.attested import attested
from agentworld.engine.breaker import CircuitBreaker, State
from agentworld.engine.discovered import Discovered, Resolve
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.replicas import Replicas
from agentworld.records.simulator import SimulatorManifest
from agentworld.storage.address import redact

_WAITING_FOR_EACH = 64  # requests in the queue for each one under way


class Secrets(BaseSettings):
    """What an endpoint wants to hear: from the environment, and written nowhere."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    engine_api_key: SecretStr = SecretStr("")


class ConnectedEngines(Admission):
    """One engine of all replicas, which are named by their addresses."""

    def __init__(self, replicas: Mapping[str, CircuitBreaker], concurrency: int) -> None:
        queue = concurrency * _WAITING_FOR_EACH
        super().__init__(Replicas(replicas), concurrency=concurrency, queue=queue)
        self._breakers = replicas

    def states(self) -> dict[str, State]:
        """Which replicas are asked, by their addresses without what is secret in them."""
        return {redact(url): breaker.state for url, breaker in self._breakers.items()}


def connect_engines(
    manifest: SimulatorManifest,
    urls: Sequence[str],
    model: str,
    *,
    concurrency: int,
    timeout_seconds: float,
    api_key: str = "",
) -> ConnectedEngines:
    """One engine of all replicas; `concurrency` is what each of them takes at once."""
    one = _one(manifest, model, concurrency, timeout_seconds, api_key)
    replicas = {url: one(url) for url in urls}
    return ConnectedEngines(replicas, concurrency * len(replicas))


def discover_engines(
    manifest: SimulatorManifest,
    resolve: Resolve,
    model: str,
    *,
    concurrency: int,
    timeout_seconds: float,
    wait_seconds: float = 30.0,
    most_waiting: int = 256,
    api_key: str = "",
) -> Discovered:
    """The same of replicas that come and go: those that `resolve` tells of."""
    return Discovered(
        resolve,
        _one(manifest, model, concurrency, timeout_seconds, api_key),
        concurrency=concurrency,
        wait_seconds=wait_seconds,
        most_waiting=most_waiting,
    )


def _one(
    manifest: SimulatorManifest,
    model: str,
    concurrency: int,
    timeout_seconds: float,
    api_key: str,
) -> Callable[[str], CircuitBreaker]:
    """How the replica at an address is reached."""
    kind = manifest.engine.kind
    logprobs = kind == "vllm" or manifest.confidence.min_logprob is not None

    def replica(url: str) -> CircuitBreaker:
        server = OpenAIEngine(
            url,
            model,
            kind=kind,
            logprobs=logprobs,
            concurrency=concurrency,
            timeout_seconds=timeout_seconds,
            api_key=api_key,
        )
        # Replicas of the service do not all probe at the same moment.
        seed = secrets.randbits(32)
        return CircuitBreaker(attested(server, manifest, model), name=server.name, seed=seed)

    return replica

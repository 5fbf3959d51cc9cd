"""From addresses to one engine that the service can lean on.

Each replica is behind a circuit breaker of its own, all of them behind one bound on what is
under way, so that too much load is a typed refusal and a dead replica is not asked.
"""

import secrets
from collections.abc import Sequence

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.engine.admission import Admission
from agentworld.engine.base import Engine
from agentworld.engine.breaker import CircuitBreaker
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.replicas import Replicas
from agentworld.records.simulator import SimulatorManifest

_WAITING_FOR_EACH = 64  # requests in the queue for each one under way


class Secrets(BaseSettings):
    """What an endpoint wants to hear: from the environment, and written nowhere."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    engine_api_key: SecretStr = SecretStr("")


def connect_engines(
    manifest: SimulatorManifest,
    urls: Sequence[str],
    model: str,
    *,
    concurrency: int,
    timeout_seconds: float,
    api_key: str = "",
) -> Engine:
    """One engine of all replicas; `concurrency` is what each of them takes at once."""
    kind = manifest.engine.kind
    replicas = {
        url: CircuitBreaker(
            OpenAIEngine(
                url,
                model,
                kind=kind,
                logprobs=kind == "vllm" or manifest.confidence.min_logprob is not None,
                concurrency=concurrency,
                timeout_seconds=timeout_seconds,
                api_key=api_key,
            ),
            # Replicas of the service do not all probe at the same moment.
            seed=secrets.randbits(32),
        )
        for url in urls
    }
    at_once = concurrency * len(replicas)
    return Admission(Replicas(replicas), concurrency=at_once, queue=at_once * _WAITING_FOR_EACH)

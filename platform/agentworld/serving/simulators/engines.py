"""Connects to the replicas of an engine, each checked against the manifest."""

from collections.abc import Callable, Sequence

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.engine.attestation import check_of
from agentworld.engine.discovery import Resolve
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.pool import EnginePool
from agentworld.engine.replica import Replica
from agentworld.records.simulator import SimulatorManifest


class Secrets(BaseSettings):
    """The credential of an endpoint, from the environment and stored nowhere."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    engine_api_key: SecretStr = SecretStr("")
    """The API key of an engine or an endpoint that needs one."""


def connect_engines(
    manifest: SimulatorManifest,
    urls: Sequence[str],
    model: str,
    *,
    concurrency: int,
    timeout_seconds: float,
    api_key: str = "",
) -> EnginePool:
    """One engine of all replicas; `concurrency` limits the requests of each."""
    connect = _connect(manifest, model, concurrency, timeout_seconds, api_key)
    return EnginePool(connect, urls=urls)


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
) -> EnginePool:
    """The same for replicas that change: the ones that `resolve` returns."""
    connect = _connect(manifest, model, concurrency, timeout_seconds, api_key)
    return EnginePool(
        connect, resolve=resolve, wait_seconds=wait_seconds, most_waiting=most_waiting
    )


def _connect(
    manifest: SimulatorManifest,
    model: str,
    concurrency: int,
    timeout_seconds: float,
    api_key: str,
) -> Callable[[str], Replica]:
    """Returns a function that connects to the replica at an address."""
    kind = manifest.engine.kind
    logprobs = kind == "vllm" or manifest.confidence.min_logprob is not None

    def connect(url: str) -> Replica:
        server = OpenAIEngine(
            url,
            model,
            kind=kind,
            logprobs=logprobs,
            concurrency=concurrency,
            timeout_seconds=timeout_seconds,
            api_key=api_key,
        )
        check = check_of(server, manifest, model)
        return Replica(server.name, server, check, concurrency=concurrency)

    return connect

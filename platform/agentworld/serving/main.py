"""The service's process: `python -m agentworld.serving.main`, set up by environment variables.

It serves the one simulator that AGENTWORLD_MANIFEST names, or all simulators of the namespace that
AGENTWORLD_NAMESPACE names. Several replicas may share one ledger: each can answer for all episodes.
"""

import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from agentworld.access.run_token import RunTokens
from agentworld.access.secret import RUN_TOKENS, ensure_secret, read_secret
from agentworld.cluster.names import ENGINE_PORT, engine_host
from agentworld.engine.accelerators import UNKNOWN
from agentworld.engine.discovery import by_name
from agentworld.engine.pool import EnginePool
from agentworld.errors import InputError
from agentworld.http.protection import Limits, most_connections
from agentworld.http.server import listen
from agentworld.ledger import Ledger
from agentworld.pinning.manifest import check_files
from agentworld.pinning.seed_probe import prove_seeds
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.serving.app import create_app
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.setup import access_of, guard_of, log_signer_of, log_signer_on_cluster
from agentworld.serving.simulators.base import Catalog, ConnectedSimulator
from agentworld.serving.simulators.cluster import ClusterSimulators, cluster_reader
from agentworld.serving.simulators.connections import Simulators
from agentworld.serving.simulators.engines import Secrets, connect_engines, discover_engines
from agentworld.serving.simulators.single import OneSimulator
from agentworld.serving.telemetry.counts import PROTOCOLS
from agentworld.serving.telemetry.tracing import Spans, TracingSettings
from agentworld.storage.objects import ObjectStore
from agentworld.storage.stores import Stores


class ServiceSettings(Stores):
    """Settings from AGENTWORLD_MANIFEST and so on."""

    manifest: Path | None = None
    """The manifest of the simulator, to serve one; else set `AGENTWORLD_NAMESPACE`."""
    model_folder: Path | None = None
    """The files that the manifest names, which the engine serves."""
    engine_urls: tuple[str, ...] = ()
    """Replicas of its engine, as a JSON list; an endpoint's world names its own."""
    engine_model: str = ""
    """The model's name at its engine."""
    accelerators: tuple[str, ...] = UNKNOWN
    """The accelerators of its engine, as a JSON list: one for all replicas, or one for each."""

    namespace: str = ""
    """The namespace whose simulators it serves, to serve those of a cluster."""
    kubeconfig: Path | None = None
    """The cluster's configuration; unset takes the cluster that the process runs in."""
    engine_wait_seconds: float = Field(45.0, gt=0)
    """How long a step waits for the first replica of an engine that is scaled to zero."""
    most_waiting: int = Field(1_000, gt=0)
    """The most steps that wait for one engine."""

    engine_concurrency: int = Field(32, gt=0)
    """The most requests that a replica gets at once."""
    engine_timeout_seconds: float = Field(120.0, gt=0)
    """How long to wait for an engine's answer."""
    idle_seconds: float = Field(3600.0, gt=0)
    """The service ends an episode that has had no step for this long."""
    seal_seconds: float = Field(10.0, gt=0)
    """How often the service signs logs that grew."""
    answer_seconds: float = Field(50.0, gt=0)
    """The longest time until a socket gets its answer; keep it below the clients' timeouts."""
    protocols: tuple[str, ...] = PROTOCOLS
    """The protocols that the service offers, as a JSON list."""
    access: Literal["local"] | Path
    """The access file; `local` trusts all users of this machine, and listens on loopback only."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 8000
    """The port to listen on."""


def serve(settings: ServiceSettings) -> None:
    """Verifies the simulator, if there is only one, and serves until a signal stops it."""
    if bool(settings.manifest) == bool(settings.namespace):
        raise InputError(
            "set either AGENTWORLD_MANIFEST, to serve one simulator, or AGENTWORLD_NAMESPACE, to"
            " serve those of a cluster"
        )
    read_tokens = read_secret if settings.namespace else ensure_secret
    tokens = RunTokens(read_tokens(settings.keys / RUN_TOKENS))
    access = access_of(tokens, settings.access, settings.host)
    manifest = _verify(settings.manifest, settings) if settings.manifest else None
    simulator = manifest.digest if manifest else None
    ledger = Ledger(settings.ledger_url, ObjectStore(settings.objects_url))
    spans = Spans(TracingSettings())
    episode_store = EpisodeStore(ledger, simulator=simulator)
    app = create_app(
        Simulators(episode_store, _catalog(settings, manifest, ledger, spans)),
        episode_store,
        log_signer_of(settings, ledger, simulator)
        if simulator
        else log_signer_on_cluster(settings, ledger),
        access,
        loopback_only=settings.access == "local",
        idle_seconds=settings.idle_seconds,
        seal_seconds=settings.seal_seconds,
        answer_seconds=settings.answer_seconds,
        protocols=settings.protocols,
    )
    guard = guard_of(app.state.app_state, Limits(connections=most_connections()))
    listen(spans.join_trace(app), guard, settings.host, settings.port)


def _verify(path: Path, settings: ServiceSettings) -> SimulatorManifest:
    """The manifest of the only simulator, after its files and its seeds were checked."""
    manifest, num_engines = SimulatorManifest.read(path), 1
    if not isinstance(manifest.engine, Endpoint):
        if settings.model_folder is None or not settings.engine_urls:
            raise InputError(
                "the environment names no engine; set AGENTWORLD_MODEL_FOLDER,"
                " AGENTWORLD_ENGINE_URLS and AGENTWORLD_ENGINE_MODEL"
            )
        check_files(manifest, settings.model_folder)
        num_engines = len(settings.engine_urls)
    concurrency = settings.engine_concurrency * num_engines
    prove_seeds(manifest, lambda: _engines(settings, manifest)[0], concurrency, briefly=True)
    return manifest


def _catalog(
    settings: ServiceSettings, manifest: SimulatorManifest | None, ledger: Ledger, spans: Spans
) -> Catalog:
    def connect(manifest: SimulatorManifest) -> ConnectedSimulator:
        engines, model = _engines(settings, manifest)
        engine = spans.of(engines, manifest, model)
        return ConnectedSimulator(manifest, engine, engines.states, lambda: settings.accelerators)

    if manifest:
        return OneSimulator(connect(manifest), ledger.aliases)
    read = cluster_reader(settings.namespace, settings.kubeconfig)
    objects = ObjectStore(settings.objects_url)
    return ClusterSimulators(read, objects, ledger, connect)


def _engines(settings: ServiceSettings, manifest: SimulatorManifest) -> tuple[EnginePool, str]:
    """The engines of a simulator, and the model's name there.

    They are a third-party endpoint, engines at known addresses, or engines of a cluster. An engine
    of a cluster serves the model under the simulator's digest, which it does only after every file
    was verified.
    """
    concurrency, seconds = settings.engine_concurrency, settings.engine_timeout_seconds
    urls, model = settings.engine_urls, settings.engine_model
    if isinstance(manifest.engine, Endpoint):
        urls, model = (manifest.engine.url,), manifest.engine.model
    elif settings.namespace:
        model = manifest.digest
        engines = discover_engines(
            manifest,
            by_name(engine_host(model, settings.namespace), ENGINE_PORT),
            model,
            concurrency=concurrency,
            timeout_seconds=seconds,
            wait_seconds=settings.engine_wait_seconds,
            most_waiting=settings.most_waiting,
        )
        return engines, model
    key = Secrets().engine_api_key.get_secret_value()
    engines = connect_engines(
        manifest, urls, model, concurrency=concurrency, timeout_seconds=seconds, api_key=key
    )
    return engines, model


def main() -> int:
    """Serves until a signal stops the process."""
    return exit_status(lambda: serve(from_environment(ServiceSettings)))


if __name__ == "__main__":
    sys.exit(main())

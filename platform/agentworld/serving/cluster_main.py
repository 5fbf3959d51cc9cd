"""A service of all simulators of a cluster: `python -m agentworld.serving.cluster_main`.

Several may run over one ledger: any of them answers for any episode.
"""

import sys
from functools import partial
from pathlib import Path

from pydantic import Field

from agentworld.engine.discovery import by_name
from agentworld.engine.names import ENGINE_PORT, engine_host
from agentworld.http.protection import Limits, most_connections
from agentworld.http.server import listen
from agentworld.ledger import Ledger
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.serving.app import create_app
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.setup import access_on_cluster, guard_of, log_signer_on_cluster
from agentworld.serving.simulators.cluster import ClusterSimulators, cluster_reader
from agentworld.serving.simulators.engines import Secrets, connect_engines, discover_engines
from agentworld.serving.simulators.many import ConnectedSimulator, OnDemand
from agentworld.serving.telemetry.counts import PROTOCOLS
from agentworld.serving.telemetry.tracing import Spans, TracingSettings
from agentworld.storage.objects import ObjectStore
from agentworld.storage.stores import Stores


class Settings(Stores):
    """All that a service is told, as AGENTWORLD_NAMESPACE and so on."""

    namespace: str
    """Whose simulators it serves."""
    kubeconfig: Path | None = None
    """Else the cluster that it runs in."""
    access: Path
    """The file that says who may come."""
    engine_concurrency: int = Field(32, gt=0)
    """Of each replica."""
    engine_timeout_seconds: float = Field(120.0, gt=0)
    engine_wait_seconds: float = Field(45.0, gt=0)
    """How long a step waits for the first replica of an engine that is scaled to zero."""
    most_waiting: int = Field(1_000, gt=0)
    """Steps that wait so for one engine."""
    idle_seconds: float = Field(3600.0, gt=0)
    """An episode without a step for so long is ended."""
    protocols: tuple[str, ...] = PROTOCOLS
    """What the service speaks, as a JSON list."""
    host: str = "0.0.0.0"
    port: int = 8000


def serve(settings: Settings) -> None:
    """Listens until it is told to stop."""
    access = access_on_cluster(settings.keys, settings.access)
    objects = ObjectStore(settings.objects_url)
    ledger = Ledger(settings.ledger_url, objects)
    episode_store, spans = EpisodeStore(ledger), Spans(TracingSettings())
    read = cluster_reader(settings.namespace, settings.kubeconfig)
    cluster = ClusterSimulators(read, objects, partial(_connect, settings, spans))
    app = create_app(
        OnDemand(episode_store, cluster.find, cluster.resolve),
        episode_store,
        log_signer_on_cluster(settings, ledger),
        access,
        idle_seconds=settings.idle_seconds,
        protocols=settings.protocols,
    )
    guard = guard_of(app.state.app_state, Limits(connections=most_connections()))
    listen(spans.joined(app), guard, settings.host, settings.port)


def _connect(settings: Settings, spans: Spans, manifest: SimulatorManifest) -> ConnectedSimulator:
    """What answers for a simulator: somebody's endpoint, or the replicas of an engine of ours.

    Those are asked for the simulator's digest as a model, which is what they answer to once
    every file was verified.
    """
    concurrency, seconds = settings.engine_concurrency, settings.engine_timeout_seconds
    if isinstance(manifest.engine, Endpoint):
        model, urls = manifest.engine.model, (manifest.engine.url,)
        key = Secrets().engine_api_key.get_secret_value()
        endpoint = connect_engines(
            manifest, urls, model, concurrency=concurrency, timeout_seconds=seconds, api_key=key
        )
        return ConnectedSimulator(manifest, spans.of(endpoint, manifest, model), endpoint.states)
    model = manifest.digest
    engine = discover_engines(
        manifest,
        by_name(engine_host(model, settings.namespace), ENGINE_PORT),
        model,
        concurrency=concurrency,
        timeout_seconds=seconds,
        wait_seconds=settings.engine_wait_seconds,
        most_waiting=settings.most_waiting,
    )
    return ConnectedSimulator(manifest, spans.of(engine, manifest, model), engine.states)


def main() -> int:
    """Serves until it is told to stop."""
    return exit_status(lambda: serve(from_environment(Settings)))


if __name__ == "__main__":
    sys.exit(main())

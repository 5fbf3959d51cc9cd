"""The service's process: `python -m agentworld.serving.main`, set up by the environment alone."""

import sys
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from agentworld.engine.accelerators import UNKNOWN
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
from agentworld.serving.service import SimulatorService
from agentworld.serving.setup import access_of, guard_of, log_signer_of
from agentworld.serving.simulators.engines import Secrets, connect_engines
from agentworld.serving.simulators.single import OneSimulator
from agentworld.serving.telemetry.counts import PROTOCOLS
from agentworld.serving.telemetry.tracing import Spans, TracingSettings
from agentworld.storage.objects import ObjectStore
from agentworld.storage.stores import Stores


class Settings(Stores):
    """All that a service is told, as AGENTWORLD_MANIFEST and so on."""

    manifest: Path
    """The pinned simulator."""
    model_folder: Path | None = None
    """The files that the manifest names, which the engine serves."""
    engine_urls: tuple[str, ...] = ()
    """Replicas of one engine, as a JSON list; an endpoint's world names its own."""
    engine_model: str = ""
    engine_concurrency: int = 32
    """Of each replica."""
    engine_timeout_seconds: float = 120.0
    accelerators: tuple[str, ...] = UNKNOWN
    """What the engine computes on, as a JSON list: of all replicas, or each where they differ."""
    idle_seconds: float = Field(3600.0, gt=0)
    """An episode without a step for so long is ended."""
    seal_seconds: float = Field(10.0, gt=0)
    """How often logs that grew are signed."""
    answer_seconds: float = Field(50.0, gt=0)
    """Within which a socket hears what became of its step: less than its client waits."""
    protocols: tuple[str, ...] = PROTOCOLS
    """What the service speaks, as a JSON list."""
    access: Literal["local"] | Path
    """The file that says who may come; `local` asks nobody, and listens on loopback alone."""
    host: str = "127.0.0.1"
    port: int = 8000


def serve(settings: Settings) -> None:
    """Verifies, then listens until it is told to stop."""
    access = access_of(settings.keys, settings.access, settings.host)
    manifest = SimulatorManifest.read(settings.manifest)
    urls, model = _engines(manifest, settings)
    connect = partial(
        connect_engines,
        manifest,
        urls,
        model,
        concurrency=settings.engine_concurrency,
        timeout_seconds=settings.engine_timeout_seconds,
        api_key=Secrets().engine_api_key.get_secret_value(),
    )
    prove_seeds(manifest, connect, settings.engine_concurrency * len(urls), briefly=True)
    ledger = Ledger(settings.ledger_url, ObjectStore(settings.objects_url))
    episode_store = EpisodeStore(ledger, only=manifest.digest)
    engine, spans = connect(), Spans(TracingSettings(), only=manifest.digest)
    service = SimulatorService(
        manifest,
        spans.of(engine, manifest, model),
        episode_store,
        states=engine.states,
        accelerators=lambda: settings.accelerators,
    )
    app = create_app(
        OneSimulator(service, ledger.aliases),
        episode_store,
        log_signer_of(settings, ledger, manifest.digest),
        access,
        loopback_only=settings.access == "local",
        idle_seconds=settings.idle_seconds,
        seal_seconds=settings.seal_seconds,
        answer_seconds=settings.answer_seconds,
        protocols=settings.protocols,
    )
    guard = guard_of(app.state.app_state, Limits(connections=most_connections()))
    listen(spans.joined(app), guard, settings.host, settings.port)


def _engines(manifest: SimulatorManifest, settings: Settings) -> tuple[tuple[str, ...], str]:
    """The addresses of all replicas and the model's name, once the files were verified."""
    if isinstance(manifest.engine, Endpoint):
        return (manifest.engine.url,), manifest.engine.model
    if settings.model_folder is None or not settings.engine_urls:
        raise InputError(
            "the environment names no engine; set AGENTWORLD_MODEL_FOLDER, AGENTWORLD_ENGINE_URLS"
            " and AGENTWORLD_ENGINE_MODEL"
        )
    check_files(manifest, settings.model_folder)
    return settings.engine_urls, settings.engine_model


def main() -> int:
    """Serves until it is told to stop."""
    return exit_status(lambda: serve(from_environment(Settings)))


if __name__ == "__main__":
    sys.exit(main())

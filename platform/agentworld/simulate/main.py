"""The service's process: `python -m agentworld.simulate.main`, set up by the environment alone."""

import sys
from functools import partial
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import AgentworldError, InputError
from agentworld.evidence.keys import SIMULATOR_KEYS, STEP_KEYS, ensure_signer, load_trusted
from agentworld.ledger import Ledger
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.simulate.app import create_app
from agentworld.simulate.engines import Secrets, connect_engines
from agentworld.simulate.listening import listen
from agentworld.simulate.manifest import check_files
from agentworld.simulate.sealing import Sealer
from agentworld.simulate.seed_probe import prove_seeds
from agentworld.storage.objects import ObjectStore, WriteOnce


class Settings(BaseSettings):
    """Addresses, as AGENTWORLD_MANIFEST and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

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
    ledger_url: str
    objects_url: str
    """Where long texts are kept."""
    checkpoints_url: str
    """The second store, of signed checkpoints; not where the ledger is."""
    keys: Path
    """A folder: `simulator` with the service's own keys, `steps` with those that close runs."""
    host: str = "127.0.0.1"
    port: int = 8000


def serve(settings: Settings) -> None:
    """Verifies, then listens until it is told to stop."""
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
    app = create_app(manifest, connect(), ledger, _sealer(settings, ledger, manifest.digest))
    listen(app, settings.host, settings.port)


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


def _sealer(settings: Settings, ledger: Ledger, simulator: Digest) -> Sealer:
    steps = settings.keys / STEP_KEYS
    return Sealer(
        ledger,
        simulator,
        ensure_signer(settings.keys / SIMULATOR_KEYS),
        WriteOnce(settings.checkpoints_url),
        load_trusted(steps) if steps.is_dir() else None,
    )


def main() -> int:
    """Exit status 2 and one sentence for what the user gave wrong."""
    try:
        serve(_settings())
    except AgentworldError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        raise InputError(f"the environment is wrong at {first_problem(error)}") from error


if __name__ == "__main__":
    sys.exit(main())

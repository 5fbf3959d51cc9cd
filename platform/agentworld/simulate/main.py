"""The service's process: `python -m agentworld.simulate.main`, set up by the environment alone."""

import sys
from pathlib import Path

import uvicorn
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.engine.openai import OpenAIEngine
from agentworld.errors import AgentworldError, InputError
from agentworld.ledger import Ledger
from agentworld.records.base import first_problem
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.app import create_app
from agentworld.simulate.manifest import check_files


class Settings(BaseSettings):
    """Addresses, as AGENTWORLD_MANIFEST and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    manifest: Path
    """The pinned simulator."""
    model_folder: Path
    """The files that the manifest names, which the engine serves."""
    engine_url: str
    engine_model: str
    engine_concurrency: int = 32
    engine_timeout_seconds: float = 120.0
    ledger_url: str
    host: str = "127.0.0.1"
    port: int = 8000


def serve(settings: Settings) -> None:
    """Verifies, then listens until it is told to stop."""
    manifest = SimulatorManifest.read(settings.manifest)
    check_files(manifest, settings.model_folder)
    engine = OpenAIEngine(
        settings.engine_url,
        settings.engine_model,
        kind=manifest.engine.kind,
        concurrency=settings.engine_concurrency,
        timeout_seconds=settings.engine_timeout_seconds,
    )
    app = create_app(manifest, engine, Ledger(settings.ledger_url))
    uvicorn.run(app, host=settings.host, port=settings.port, log_level="warning")


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

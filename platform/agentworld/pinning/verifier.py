"""What checks an engine's weights before it starts: `python -m agentworld.pinning.verifier`.

It ends well only where every file is the one that the manifest names, and leaves the arguments
with which vLLM answers to the manifest's digest. An engine that started without it, or over other
weights, answers to another name, and is not believed.
"""

import sys
import time
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.engine.adapter import adapter_arguments
from agentworld.errors import AgentworldError
from agentworld.pinning.manifest import check_files
from agentworld.recipes.environment import from_environment
from agentworld.records.file import write_whole
from agentworld.records.simulator import SimulatorManifest
from agentworld.storage.fetch import fetch_files


class VerifierSettings(BaseSettings):
    """As AGENTWORLD_MANIFEST and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    manifest: Path
    """The manifest of the pinned simulator."""
    model_folder: Path
    """The folder with the model's files, or where to put them."""
    weights_url: str | None = None
    """Where to fetch the files from; unset, they are in the folder."""
    engine_arguments: Path
    """The file to write the engine's arguments into, once every file is verified."""


def verify(settings: VerifierSettings) -> None:
    """Raises InputError naming the first file that is not the pinned one."""
    start = time.monotonic()
    manifest = SimulatorManifest.read(settings.manifest)
    if settings.weights_url:
        fetch_files(settings.weights_url, manifest.files, settings.model_folder)
    fetch_end = time.monotonic()
    check_files(manifest, settings.model_folder)
    adapter = adapter_arguments("vllm", settings.model_folder, manifest.digest)
    arguments = adapter or ("--served-model-name", manifest.digest)
    write_whole(settings.engine_arguments, " ".join(arguments).encode())
    durations = (
        f"fetched in {fetch_end - start:.2f} s, checked in {time.monotonic() - fetch_end:.2f} s"
    )
    sys.stdout.write(f"{manifest.digest}: {len(manifest.files)} files, {durations}\n")


def main() -> int:
    """Exit status 2 and one sentence, which becomes the Simulator's condition."""
    try:
        verify(from_environment(VerifierSettings))
    except AgentworldError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

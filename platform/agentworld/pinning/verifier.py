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
from agentworld.pinning.manifest import artifact_of
from agentworld.recipes.environment import from_environment
from agentworld.records.file import write_whole
from agentworld.records.simulator import SimulatorManifest
from agentworld.storage.fetch import fetch_files
from agentworld.storage.model_folder import check_safe
from agentworld.storage.shared_model import Work, share_model

_WORK: dict[Work, str] = {
    "fetched": "fetched and checked",
    "hashed": "checked again",
    "unchanged": "unchanged since their check, looked at",
}


class VerifierSettings(BaseSettings):
    """As AGENTWORLD_MANIFEST and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    manifest: Path
    """The manifest of the pinned simulator."""
    model_folder: Path
    """The folder with the model's files, or where to put them."""
    weights_url: str | None = None
    """Where to fetch the files from; unset, they are in the folder."""
    weights_shared: bool = False
    """Whether other pods have the folder too, so that one of them fetches and verifies for all."""
    engine_arguments: Path
    """The file to write the engine's arguments into, once every file is verified."""


def verify(settings: VerifierSettings) -> None:
    """Raises InputError naming the first file that is not the pinned one."""
    start = time.monotonic()
    manifest = SimulatorManifest.read(settings.manifest)
    folder, artifact = settings.model_folder, artifact_of(manifest)
    if not settings.weights_url:
        work = "checked"
        artifact.verify(folder)
    elif settings.weights_shared:
        work = _WORK[share_model(settings.weights_url, artifact, folder)]
    else:
        work = _WORK["fetched"]
        fetch_files(settings.weights_url, artifact.files, folder)
    check_safe(folder)
    adapter = adapter_arguments("vllm", folder, manifest.digest)
    arguments = adapter or ("--served-model-name", manifest.digest)
    write_whole(settings.engine_arguments, " ".join(arguments).encode())
    duration = time.monotonic() - start
    sys.stdout.write(
        f"{manifest.digest}: {len(manifest.files)} files, {work} in {duration:.2f} s\n"
    )


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

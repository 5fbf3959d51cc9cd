"""Verifies an engine's weights before it starts:

`python -m agentworld.pinning.verifier`. It succeeds only if every file is the one in the manifest,
and then writes the arguments with which vLLM answers under the manifest's digest as its model name.
An engine that was started without it, or with other weights, has another name, and is refused.
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
    """Set by AGENTWORLD_MANIFEST and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    manifest: Path
    """The manifest of the pinned simulator."""
    model_folder: Path
    """The folder with the model's files, or where to put them."""
    weights_url: str | None = None
    """Where to fetch the files from; unset, they are in the folder."""
    weights_shared: bool = False
    """Whether other pods share the folder, so that one of them fetches and verifies for all."""
    engine_arguments: Path
    """The file for the engine's arguments, written after every file is verified."""


def verify(settings: VerifierSettings) -> None:
    """Raises InputError with the first file that is not the pinned one."""
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
    """Writes an error as one sentence, which becomes the Simulator's condition.

    The exit status is 2 if the weights are refused, and 1 if a retry can help.
    """
    try:
        verify(from_environment(VerifierSettings))
    except AgentworldError as error:
        sys.stderr.write(f"{error}\n")
        return 1 if error.retryable else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Identifies the installed engine (an image or a lock of packages), which is pinned with a
simulator and checked before it is served.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.engine.base import EngineKind
from agentworld.engine.programs import installed_as, is_installed
from agentworld.errors import InputError
from agentworld.recipes.environment import from_environment
from agentworld.records.base import Digest, digest_json
from agentworld.records.simulator import Endpoint, SimulatorManifest


class ContainerSettings(BaseSettings):
    """Settings that the container's environment must state."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    engine_image: Digest | None = None
    """The digest of the image that engines run in; unset outside of a container."""
    engine_version: str | None = None
    """The version of the engine in that image, if this image has no engine."""


class InstalledEngine(NamedTuple):
    """The origin of an engine: an image, or the lock of a Python environment."""

    image: Digest | None
    lock: Digest | None

    def __str__(self) -> str:
        return f"image {self.image}" if self.image else f"lock {self.lock}"


def installed_engine(kind: EngineKind) -> InstalledEngine:
    """The origin of an engine of this kind; raises InputError if it is not installed, or if an
    image has no digest.
    """
    image = from_environment(ContainerSettings).engine_image
    return InstalledEngine(image, None if image else lock_digest(kind))


def container_engine_version(kind: EngineKind) -> str | None:
    """The version of an engine that only its image has; null if it is installed here.

    Raises InputError if the version is not stated.
    """
    if is_installed(kind):
        return None
    version = from_environment(ContainerSettings).engine_version
    if not version:
        raise InputError(
            f"the engine {kind} is not installed here; set AGENTWORLD_ENGINE_VERSION to what its"
            " image has, as `vllm 0.32.0`"
        )
    return version


def check_installed(manifest: SimulatorManifest) -> None:
    """Raises InputError if this machine's engine is not the pinned one."""
    if isinstance(manifest.engine, Endpoint):
        return
    pinned = InstalledEngine(manifest.engine.image, manifest.engine.lock)
    current = installed_engine(manifest.engine.kind)
    if pinned != current:
        raise InputError(
            f"the simulator's engine was pinned with {pinned} and here is {current}; serve it"
            " there, or pin again"
        )


@cache
def lock_digest(kind: EngineKind) -> Digest:
    """The digest of the installed versions of an engine and all its requirements."""
    return digest_json(_versions(installed_as(kind)))


def _versions(engine: Requirement) -> dict[str, str]:
    """Versions by name; requirements that are not installed are left out."""
    versions: dict[str, str] = {}
    waiting, visited = [engine], set[tuple[str, frozenset[str]]]()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in visited:
            continue
        visited.add((name, extras))
        with suppress(metadata.PackageNotFoundError):
            distribution = metadata.distribution(name)
            versions[name] = distribution.version
            waiting += _required_by(distribution, extras)
    return versions


def _required_by(
    distribution: metadata.Distribution, extras: Iterable[str]
) -> Iterator[Requirement]:
    """The requirements on this platform, for these extras."""
    for requirement in map(Requirement, distribution.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement

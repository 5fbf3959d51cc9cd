"""What engines of this place come from: pinned with a simulator, checked before it is served."""

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
    """What only whoever starts a container knows of it."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    engine_image: Digest | None = None
    """The digest of the image that engines run in; unset outside of a container."""
    engine_version: str | None = None
    """The version of the engine in that image, if this image has none."""


class InstalledEngine(NamedTuple):
    """An image, which says all, or the lock of an environment."""

    image: Digest | None
    lock: Digest | None

    def __str__(self) -> str:
        return f"image {self.image}" if self.image else f"lock {self.lock}"


def installed_engine(kind: EngineKind) -> InstalledEngine:
    """What an engine of this kind comes from; raises InputError for one that is not here, or an
    image without a digest.
    """
    image = from_environment(ContainerSettings).engine_image
    return InstalledEngine(image, None if image else lock_digest(kind))


def container_engine_version(kind: EngineKind) -> str | None:
    """Of an engine that is in its image alone; null for one that is installed here.

    Raises InputError where nobody says it.
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
    """Raises InputError where engines of this place come from elsewhere than the pinned one."""
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
    """Over the installed version of an engine and of everything that it requires."""
    return digest_json(_versions(installed_as(kind)))


def _versions(engine: Requirement) -> dict[str, str]:
    """By name; what is required and not installed plays no part."""
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
    """Here, and for these extras."""
    for requirement in map(Requirement, distribution.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement

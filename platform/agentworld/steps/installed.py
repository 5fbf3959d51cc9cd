"""What engines of this place come from: pinned with a simulator, checked before it is served."""

from typing import NamedTuple

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.steps.code import lock_digest


class Settings(BaseSettings):
    """What only whoever starts a container knows of it."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    engine_image: Digest | None = None
    """Of the image that engines run in; unset outside of a container."""


class Installed(NamedTuple):
    """An image, which says all, or the lock of an environment."""

    image: Digest | None
    lock: Digest | None

    def __str__(self) -> str:
        return f"image {self.image}" if self.image else f"lock {self.lock}"


def installed() -> Installed:
    """Raises InputError where the environment names no digest."""
    try:
        image = Settings().engine_image
    except ValidationError as error:
        raise InputError(f"the environment is wrong at {first_problem(error)}") from error
    return Installed(image, None if image else lock_digest())


def check_installed(manifest: SimulatorManifest) -> None:
    """Raises InputError where engines of this place come from elsewhere than the pinned one."""
    if isinstance(manifest.engine, Endpoint):
        return
    pinned, here = Installed(manifest.engine.image, manifest.engine.lock), installed()
    if pinned != here:
        raise InputError(
            f"the simulator's engine was pinned with {pinned} and here is {here}; serve it there,"
            " or pin anew"
        )

"""Where a service keeps what it answers: the same names for the service and for who reads it."""

from collections.abc import Set
from pathlib import Path
from typing import Self

from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from agentworld.errors import InputError
from agentworld.storage.address import shown
from agentworld.storage.working_copy import copy_of, there


class Stores(BaseSettings):
    """Where a service keeps what it answers, and the keys that it signs with."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    ledger_url: str
    objects_url: str
    """Where long texts are kept."""
    checkpoints_url: str
    """The second store, of signed checkpoints; not where the ledger is."""
    keys: Path
    """A folder: `simulator` with the service's own keys, `steps` with those that close runs."""

    @classmethod
    def of(cls, folder: Path) -> Self:
        """What AGENTWORLD_LEDGER_URL and so on name, and files in the folder for the rest.

        Raises InputError for the working copy of a bucket where no ledger or keys are named.
        """
        whole, named = folder.resolve(), cls.named()
        local = {"ledger_url": f"sqlite:///{whole / 'ledger.db'}", "keys": str(whole / "keys")}
        if copy := copy_of(whole):
            _check_named(copy.url, local.keys() - named)
        files = {
            "objects_url": cls.objects_url_of(folder),
            "checkpoints_url": there(str(whole / "checkpoints")),
        }
        return cls.model_validate(local | files | named)

    @classmethod
    def objects_url_of(cls, folder: Path) -> str:
        """Where the long texts and reports of a store are."""
        return cls.named().get("objects_url") or there(str(folder.resolve() / "objects"))

    @classmethod
    def named(cls) -> dict[str, str]:
        """What the environment names."""
        return EnvSettingsSource(cls)()


def _check_named(bucket: str, missing: Set[str]) -> None:
    if missing:
        variables = " and ".join(f"AGENTWORLD_{name.upper()}" for name in sorted(missing))
        raise InputError(
            f"{shown(bucket)} is a bucket, in which no ledger and no key can be; set {variables}"
        )

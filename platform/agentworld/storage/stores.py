"""The locations of a service's data, for the service and its readers."""

import os
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError
from agentworld.records.garbled import redact
from agentworld.storage.working_copy import address_of, copy_of

_PREFIX = "AGENTWORLD_"


class Stores(BaseSettings):
    """The locations of a service's data and signing keys."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, frozen=True)

    ledger_url: str
    """The database with runs, episodes and aliases."""
    objects_url: str
    """The folder or bucket with long texts."""
    mirror_url: str
    """The evidence mirror with copies of signed statements; keep it apart from the ledger."""
    keys: Path
    """The folder with signing keys: `simulator` of the service, `steps` of the steps that close
    runs.
    """

    @classmethod
    def of(cls, folder: Path) -> "Stores":
        """The locations in AGENTWORLD_LEDGER_URL and so on, and in the folder for the rest.

        Raises InputError for the working copy of a bucket if no ledger is named.
        """
        whole, settings = folder.resolve(), cls.from_environment()
        copy = copy_of(whole)
        if copy and "ledger_url" not in settings:
            raise InputError(
                f"{redact(copy.url)} is a bucket, which cannot hold a ledger; set"
                " AGENTWORLD_LEDGER_URL"
            )
        urls = {
            "ledger_url": f"sqlite:///{whole / 'ledger.db'}",
            "objects_url": address_of(str(whole / "objects")),
            "mirror_url": address_of(str(whole / "mirror")),
        }
        keys = Path(settings.pop("keys", whole / "keys"))
        # Not validated, because all fields are texts: reading the environment again takes a
        # millisecond.
        return Stores.model_construct(None, **(urls | settings), keys=keys)

    @classmethod
    def objects_url_of(cls, folder: Path) -> str:
        """The location of a store's long texts and reports."""
        return cls.from_environment().get("objects_url") or address_of(
            str(folder.resolve() / "objects")
        )

    @classmethod
    def keys_of(cls, folder: Path) -> Path:
        """The location of a store's keys."""
        return Path(cls.from_environment().get("keys") or folder.resolve() / "keys")

    @classmethod
    def from_environment(cls) -> dict[str, str]:
        """The locations in environment variables."""
        values = {name: os.environ.get(_PREFIX + name.upper()) for name in Stores.model_fields}
        return {name: value for name, value in values.items() if value}

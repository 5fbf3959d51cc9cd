"""Where a service keeps what it answers: the same names for the service and for who reads it."""

import os
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError
from agentworld.records.garbled import redact
from agentworld.storage.working_copy import address_of, copy_of

_PREFIX = "AGENTWORLD_"


class Stores(BaseSettings):
    """Where a service keeps what it answers, and the keys that it signs with."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, frozen=True)

    ledger_url: str
    """The database with runs, episodes and aliases."""
    objects_url: str
    """The folder or bucket with long texts."""
    mirror_url: str
    """The evidence mirror, a copy of what was signed; keep it apart from the ledger."""
    keys: Path
    """The folder with signing keys: `simulator` of the service, `steps` of what closes runs."""

    @classmethod
    def of(cls, folder: Path) -> "Stores":
        """What AGENTWORLD_LEDGER_URL and so on name, and files in the folder for the rest.

        Raises InputError for the working copy of a bucket where no ledger is named.
        """
        whole, settings = folder.resolve(), cls.from_environment()
        copy = copy_of(whole)
        if copy and "ledger_url" not in settings:
            raise InputError(
                f"{redact(copy.url)} is a bucket, in which no ledger can be; set"
                " AGENTWORLD_LEDGER_URL"
            )
        urls = {
            "ledger_url": f"sqlite:///{whole / 'ledger.db'}",
            "objects_url": address_of(str(whole / "objects")),
            "mirror_url": address_of(str(whole / "mirror")),
        }
        keys = Path(settings.pop("keys", whole / "keys"))
        # Checked by nobody, for all are texts: to read the environment anew takes a millisecond.
        return Stores.model_construct(None, **(urls | settings), keys=keys)

    @classmethod
    def objects_url_of(cls, folder: Path) -> str:
        """Where the long texts and reports of a store are."""
        return cls.from_environment().get("objects_url") or address_of(
            str(folder.resolve() / "objects")
        )

    @classmethod
    def keys_of(cls, folder: Path) -> Path:
        """Where the keys of a store are."""
        return Path(cls.from_environment().get("keys") or folder.resolve() / "keys")

    @classmethod
    def from_environment(cls) -> dict[str, str]:
        """What the environment names."""
        values = {name: os.environ.get(_PREFIX + name.upper()) for name in Stores.model_fields}
        return {name: value for name, value in values.items() if value}

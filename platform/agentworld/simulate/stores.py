"""Where a service keeps what it answers: the same names for the service and for who reads it."""

from pathlib import Path
from typing import Self

from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict


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
        """What AGENTWORLD_LEDGER_URL and so on name, and files in the folder for the rest."""
        whole = folder.resolve()
        files = {
            "ledger_url": f"sqlite:///{whole / 'ledger.db'}",
            "objects_url": str(whole / "objects"),
            "checkpoints_url": str(whole / "checkpoints"),
            "keys": whole / "keys",
        }
        return cls.model_validate(files | cls.named())

    @classmethod
    def named(cls) -> dict[str, str]:
        """What the environment names."""
        return EnvSettingsSource(cls)()

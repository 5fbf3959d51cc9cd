"""Settings of the console's process."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ConsoleSettings(BaseSettings):
    """Set by AGENTWORLD_CONSOLE_STORE and so on.

    AGENTWORLD_LEDGER_URL and similar variables give the addresses of parts of the store that are
    elsewhere, MLFLOW_TRACKING_URI that of its registry.
    """

    model_config = SettingsConfigDict(
        env_prefix="AGENTWORLD_CONSOLE_", env_ignore_empty=True, frozen=True
    )

    store: str
    """The folder of steps, registry and ledger, or its URL in a bucket."""
    access: Literal["local"] | Path | None = None
    """The access file; `local` trusts all users of this machine, and listens on loopback only."""
    proxy_secret: SecretStr = SecretStr("")
    """The secret that an authenticating proxy shows; empty without a proxy."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(8090, ge=1, le=65535)
    """The port to listen on."""

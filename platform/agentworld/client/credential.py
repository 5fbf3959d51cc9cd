"""What a command shows a simulator service."""

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ClientSettings(BaseSettings):
    """From the environment, and written nowhere."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    credential: SecretStr = SecretStr("")
    """An API key, a run's token or a service account's; it goes before the address's own."""

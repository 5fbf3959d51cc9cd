"""Which simulator service is asked, and what it is shown."""

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ClientSettings(BaseSettings):
    """From the environment, and written nowhere."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    credential: SecretStr = SecretStr("")
    """An API key, a run's token or a service account's; it goes before the address's own."""
    service_url: str = ""
    """Where what is measured is served; empty serves it for as long as that takes."""

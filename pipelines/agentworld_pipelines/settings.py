"""Where a Kubeflow Pipelines server is, and what it is shown."""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class ServerSettings(BaseSettings):
    """As AGENTWORLD_KFP_URL and so on."""

    model_config = SettingsConfigDict(
        env_prefix="AGENTWORLD_KFP_", env_ignore_empty=True, frozen=True
    )

    url: str = ""
    token_file: Path | None = None
    """Read again for each request: a projected token is replaced while it is used."""
    namespace: str = ""
    """The user's, on a server of many users; the others refuse one."""

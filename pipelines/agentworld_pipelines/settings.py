"""Where servers and clusters are that a pipeline needs, and what they are shown."""

from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ServerSettings(BaseSettings):
    """Of a Kubeflow Pipelines server, as AGENTWORLD_KFP_URL and so on."""

    model_config = SettingsConfigDict(
        env_prefix="AGENTWORLD_KFP_", env_ignore_empty=True, frozen=True
    )

    url: str = ""
    token_file: Path | None = None
    """Read again for each request: a projected token is replaced while it is used."""
    namespace: str = ""
    """The user's, on a server of many users; the others refuse one."""


class ClusterSettings(BaseSettings):
    """Of the cluster that a step deploys to, as AGENTWORLD_KUBECONFIG and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    kubeconfig: Path | None = None
    """Else the cluster that the step runs in."""
    namespace: str = ""
    """Else the pod's own."""
    service_url: str = ""
    """Of the simulator service, which is then asked for one step."""
    credential: SecretStr = SecretStr("")
    """What the service is shown, of the role `agent`."""

"""What an operator's process is told, as AGENTWORLD_NAMESPACE and so on."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Addresses and names; what becomes of a Simulator is said in the Simulator."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    namespace: str
    """The one that it watches and writes to."""
    identity: str
    """Its own name among its replicas, as its pod's."""
    service_url: str
    """Where agents open runs, and where open episodes are told."""
    service_token: Path | None = None
    """The file of a credential for the service, with the role `operator`."""
    verifier_image: str
    """Of the init container that checks an engine's weights."""
    kubeconfig: Path | None = None
    """Else the cluster that it runs in."""
    lease_seconds: float = Field(15.0, gt=3)
    """How long another replica waits for one that does not answer."""
    look_seconds: float = Field(60.0, gt=0)
    """How often everything is looked at, whatever the watches told."""
    ask_seconds: float = Field(5.0, gt=0)
    """How often the service is asked for open episodes."""

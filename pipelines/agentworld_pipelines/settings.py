"""Addresses and credentials of the servers and clusters that a pipeline needs."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ServerSettings(BaseSettings):
    """Settings of a Kubeflow Pipelines server, from AGENTWORLD_KFP_URL and so on."""

    model_config = SettingsConfigDict(
        env_prefix="AGENTWORLD_KFP_", env_ignore_empty=True, frozen=True
    )

    url: str = ""
    """The server's address."""
    token_file: Path | None = None
    """A file with a token for the server, read again for each request."""
    namespace: str = ""
    """The user's namespace, on a multi-user server; other servers refuse one."""


class ClusterSettings(BaseSettings):
    """Settings of a cluster, from AGENTWORLD_KUBECONFIG and so on; a pod in it needs none."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    namespace: str = ""
    """The namespace of the cluster; empty takes the pod's own."""
    kubeconfig: Path | None = None
    """The cluster's configuration; unset takes the cluster that the process runs in."""
    seccomp_profile: str = ""
    """The file of a seccomp profile on the nodes, for Jobs with live environments on clusters that
    otherwise set the runtime's profile.
    """
    look_seconds: float = Field(5.0, gt=0)
    """How often a step reads the state of its Job or TrainJob."""
    progress_seconds: float = Field(30.0, gt=0)
    """The shortest time between two reports of a step's progress."""
    patience_seconds: float = Field(300.0, ge=0)
    """How long a step waits for an API server that does not answer."""
    settle_seconds: float = Field(60.0, ge=0)
    """How long a file that another node wrote may take to appear."""


def namespace_of(settings: ClusterSettings) -> str:
    """The namespace to work in; raises InputError if none is set."""
    if settings.namespace:
        return settings.namespace
    try:
        return _OWN_NAMESPACE.read_text().strip()
    except OSError as error:
        raise InputError("this process runs in no pod; set AGENTWORLD_NAMESPACE") from error

"""Settings of an operator's process, as AGENTWORLD_NAMESPACE and so on."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld_operator.children.pod import EnginePods


class OperatorSettings(BaseSettings):
    """Addresses and names; the settings of a Simulator are in the Simulator."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    namespace: str
    """The namespace that it watches and writes to."""
    identity: str
    """Its own name among its replicas, as its pod's."""
    service_url: str
    """Where agents open runs, and where open episodes are counted."""
    service_token: Path | None = None
    """The file of a credential for the service, with the role `operator`."""
    verifier_image: str
    """The image of the init container that checks an engine's weights."""
    pull_secrets: tuple[str, ...] = ()
    """Secrets for pulling engines' images, as a JSON list."""
    engine_pods: EnginePods | None = None
    """The service account, labels, annotations and priority class of all engines' pods, as JSON."""
    kubeconfig: Path | None = None
    """The cluster's configuration; unset takes the cluster that the process runs in."""
    lease_seconds: float = Field(15.0, gt=3)
    """How long another replica waits for a leader that does not renew its lease."""
    metrics_port: int | None = None
    """The port of `GET /metrics`; unset disables it."""
    look_seconds: float = Field(60.0, gt=0)
    """How often the operator lists all objects, in addition to watching them."""
    ask_seconds: float = Field(5.0, gt=0)
    """How often the operator asks the service for open episodes."""
    pipeline_image: str = ""
    """The image that the steps of a scheduled pipeline run in."""
    pipeline_placement: Path | None = None
    """The placement file that says where these steps run."""
    mirror_seconds: float = Field(30.0, gt=0)
    """How often the operator reads schedules and runs from Kubeflow Pipelines."""


class WebhookSettings(BaseSettings):
    """Settings of the admission webhook, as AGENTWORLD_WEBHOOK_PORT and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_WEBHOOK_", frozen=True)

    port: int | None = None
    """The port that the webhook listens on; unset starts no webhook."""
    host: str = "0.0.0.0"
    """The address that the webhook listens on."""
    folder: Path = Path("/etc/agentworld/webhook")
    """The folder with the Secret's `tls.crt` and `tls.key`."""
    client_ca: Path | None = None
    """The certificate authority of the API server's client certificate; the webhook then refuses
    every other client. If unset, every client that reaches the port can have a move recorded.
    """
    reload_seconds: float = Field(60.0, gt=0)
    """How often the webhook checks its certificate's files for changes."""
    settle_seconds: float = Field(30.0, gt=0)
    """How long a move of an alias may take from the ledger to the cluster."""

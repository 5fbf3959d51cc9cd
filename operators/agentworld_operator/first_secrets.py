"""Creates an installation's first Secrets: `python -m agentworld_operator.first_secrets`.

It may create Secrets, and may not read them. An existing Secret stays unchanged, so an upgrade or a
retry changes nothing. Do not delete them: without the keys all run tokens become invalid, and
without the password the database is inaccessible.
"""

import base64
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.access.secret import RUN_TOKENS, new_secret
from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.names import OPERATOR
from agentworld.errors import ClusterError
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.signing.keys import SIGNER, new_signer

Files = Mapping[str, bytes]
"""The entries of a Secret."""

_CONFLICT = 409
_USER = "agentworld"


class SecretSettings(BaseSettings):
    """The Secrets' names, from AGENTWORLD_KEYS_SECRET and so on; one without a name is not made."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    namespace: str
    """The namespace of the Secrets."""
    kubeconfig: Path | None = None
    """The cluster's configuration; unset takes the cluster that the process runs in."""
    labels: Mapping[str, str] = {}
    """Labels of all Secrets, as a JSON object."""
    keys_secret: str | None = None
    """The Secret with the keys that sign the runs' logs and make the runs' tokens."""
    database_secret: str | None = None
    """The Secret with the password of the chart's PostgreSQL."""
    database_host: str = ""
    """The host of that PostgreSQL."""
    databases: tuple[str, ...] = ()
    """Its databases, as a JSON list; the Secret has the address of each as `NAME-url`."""


def keys() -> Files:
    """The keys that a simulator service mounts."""
    return {SIGNER: new_signer(), RUN_TOKENS: new_secret()}


def database(host: str, databases: Sequence[str]) -> Files:
    """A user, a password, and the address of each database."""
    password = secrets.token_urlsafe(24)
    urls = {
        f"{name}-url": f"postgresql+psycopg://{_USER}:{password}@{host}/{name}"
        for name in databases
    }
    credentials = {"username": _USER, "password": password} | urls
    return {name: value.encode("ascii") for name, value in credentials.items()}


def make_all(settings: SecretSettings, cluster: Cluster) -> list[str]:
    """Creates missing Secrets; returns a line about each."""
    factories: list[tuple[str | None, Callable[[], Files]]] = [
        (settings.keys_secret, keys),
        (settings.database_secret, lambda: database(settings.database_host, settings.databases)),
    ]
    return [_make(cluster, name, files(), settings.labels) for name, files in factories if name]


def _make(cluster: Cluster, name: str, files: Files, labels: Mapping[str, str]) -> str:
    annotations = {"helm.sh/resource-policy": "keep"}
    data = {key: base64.b64encode(value).decode() for key, value in files.items()}
    metadata = {"name": name, "labels": dict(labels), "annotations": annotations}
    try:
        cluster.create({**type_fields("Secret"), "metadata": metadata, "data": data})
    except ClusterError as error:
        if error.status != _CONFLICT:
            raise
        return f"Secret {name} exists and stays unchanged"
    return f"Secret {name} was made"


def main() -> int:
    """The exit status; a Job retries after any failure."""
    return exit_status(_run)


def _run() -> None:
    settings = from_environment(SecretSettings)
    client_configuration = configuration(settings.kubeconfig)
    for line in make_all(
        settings, Cluster(ApiServer(client_configuration), settings.namespace, OPERATOR)
    ):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())

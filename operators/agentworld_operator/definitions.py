"""Upgrades our CRDs before a release: `python -m agentworld_operator.definitions`.

All namespaces share the CRDs, so the newest release that wrote them wins. Otherwise an older
release that is installed or upgraded in another namespace would remove fields.
"""

import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld import __version__
from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.names import OPERATOR, RELEASE
from agentworld.recipes.environment import exit_status, from_environment
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS


class DefinitionSettings(BaseSettings):
    """Set by AGENTWORLD_KUBECONFIG."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", frozen=True)

    kubeconfig: Path | None = None
    """The cluster's configuration; unset takes the cluster that the process runs in."""


def upgrade(cluster: Cluster) -> list[str]:
    """Applies the CRDs that no newer release wrote; returns a line for each."""
    return [_upgrade(cluster, crd(kind)) for kind in KINDS]


def _upgrade(cluster: Cluster, definition: Object) -> str:
    name = definition["metadata"]["name"]
    current = cluster.get(definition["kind"], name)
    if current and (newer := _release(current)) > Version(__version__):
        return f"{name} stays as release {newer} wrote it, because this is release {__version__}"
    cluster.apply(definition)
    return f"{name} is that of release {__version__}"


def _release(definition: Object) -> Version:
    """The newest release that wrote a CRD; 0 if the annotation is missing or invalid."""
    annotations = definition["metadata"].get("annotations") or {}
    try:
        return Version(annotations.get(RELEASE, "0"))
    except InvalidVersion:
        return Version("0")


def main() -> int:
    """The exit status; a Job retries after any failure."""
    return exit_status(_run)


def _run() -> None:
    server = ApiServer(configuration(from_environment(DefinitionSettings).kubeconfig))
    for line in upgrade(Cluster(server, "", OPERATOR)):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())

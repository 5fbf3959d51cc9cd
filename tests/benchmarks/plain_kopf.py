"""The yardstick: the same children from plain kopf handlers, as in kopf's tutorial.

It computes the digest, creates a Simulator's children and writes the digest into the status. It
neither verifies, scales, repairs nor sets conditions.
"""

import os
import time
from pathlib import Path
from typing import Any

import kopf

from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.records.simulator import SimulatorSpec
from agentworld.records.base import Digest
from agentworld.records.simulator import EnginePin
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import PodSource
from agentworld_operator.connection import login
from make.operator import older_budgets

_CONFIGURATION = configuration(Path(os.environ["AGENTWORLD_KUBECONFIG"]))
_CLUSTER = Cluster(ApiServer(_CONFIGURATION), os.environ["AGENTWORLD_NAMESPACE"], "plain-kopf")


@kopf.on.login()
def log_in(**_: Any) -> kopf.ConnectionInfo:
    return login(_CONFIGURATION)


@kopf.on.startup()
def quiet(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True


@kopf.on.create("simulators.agentworld.dev")
def create_children(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    """Creates the children and sets the digest."""
    spec = SimulatorSpec.model_validate(dict(body["spec"]))
    manifest, serving = spec.identity.manifest, spec.serving
    assert manifest is not None
    assert isinstance(manifest.engine, EnginePin)
    assert serving.weights is not None
    digest: Digest = manifest.digest
    source = PodSource(digest, manifest, manifest.engine, serving, serving.weights, "image")
    owner = {"metadata": dict(body["metadata"])}
    for child in children(source, owner, serving.replicas):
        _CLUSTER.create(child)
    patch.status["digest"] = digest
    patch.status["observedGeneration"] = body["metadata"]["generation"]


def main() -> None:
    with older_budgets():
        kopf.run(standalone=True, namespace=_CLUSTER.namespace)


if __name__ == "__main__":
    print(time.time(), "leads", flush=True)
    main()

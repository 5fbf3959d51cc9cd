"""Compares the operator's children with what its builder makes of the spec."""

from collections.abc import Iterator

from agentworld.cluster.records.simulator import SimulatorSpec
from agentworld.records.simulator import EnginePin
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import PodSource
from agentworld_operator.policy.drift import is_as_built
from campaigns.harness.finding import Finding
from campaigns.operator.judge import digest_of, is_served, unlike, wanted_replicas
from campaigns.operator.place import VERIFIER_IMAGE
from campaigns.operator.snapshot import Object, Snapshot


def otherwise(snapshot: Snapshot) -> Iterator[Finding]:
    """Children that differ in any field from the built ones."""
    for simulator in snapshot.simulators.values():
        if is_served(simulator, snapshot):
            for expected in _built(simulator, snapshot):
                kind, name = expected["kind"], expected["metadata"]["name"]
                child = snapshot.children[kind].get(name)
                if child and not is_as_built(expected, child):
                    yield unlike("otherwise", f"{kind} {name}", "as it is built", "not so")


def _built(simulator: Object, snapshot: Snapshot) -> list[Object]:
    spec, digest = SimulatorSpec.model_validate(simulator["spec"]), digest_of(simulator)
    manifest, serving = spec.identity.manifest, spec.serving
    assert manifest
    assert isinstance(manifest.engine, EnginePin)
    assert serving.weights
    source_fields = manifest.engine, serving, serving.weights, VERIFIER_IMAGE
    replicas = wanted_replicas(simulator, snapshot.episodes.get(digest, 0))
    return children(PodSource(digest, manifest, *source_fields), simulator, replicas)

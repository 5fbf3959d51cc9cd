"""One simulator's engine: a Deployment, its Service, its PodDisruptionBudget, its manifest."""

from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.names import (
    BUILT,
    ENGINE_PORT,
    QUEUE_LABEL,
    child_labels,
    engine_labels,
    engine_name,
)
from agentworld.records.base import digest_json
from agentworld_operator.children.pod import Manifest, PodSource, pod_template

# One replica at a time may be evicted, also a single one; an unready one always may. Otherwise a
# node could not be drained, because a budget protects the last replica even if it never gets ready.
DISRUPTIONS: Manifest = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


def children(source: PodSource, owner: Manifest, replicas: int) -> list[Manifest]:
    """All objects of the engine, in the order in which they are applied."""
    built = [
        _config_map(source),
        _service(source),
        _deployment(source, replicas),
        _disruption_budget(source),
    ]
    return [_own(child, source, owner) for child in built]


def _own(child: Manifest, source: PodSource, owner: Manifest) -> Manifest:
    """Adds the metadata of all children. Kubernetes deletes them with their owner.

    The comparison ignores fields that others added, so it would also ignore a field that the
    operator no longer sets. The digest of the built object makes that a difference.
    """
    owner_metadata = owner["metadata"]
    reference = {
        **type_fields("Simulator"),
        "name": owner_metadata["name"],
        "uid": owner_metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    own = child.pop("metadata", {})
    metadata = {
        "name": engine_name(source.digest),
        "namespace": owner_metadata["namespace"],
        "labels": child_labels(source.digest) | own.get("labels", {}),
        "ownerReferences": [reference],
    }
    return {**child, "metadata": metadata | {"annotations": {BUILT: digest_json(child)}}}


def _config_map(source: PodSource) -> Manifest:
    manifest = source.manifest.canonical.decode()
    return {
        **type_fields("ConfigMap"),
        "immutable": True,
        "data": {"manifest.json": manifest},
    }


def _service(source: PodSource) -> Manifest:
    """A headless Service: the simulator service connects to each replica's own address, so that an
    episode stays with the replica that has cached its prefix.
    """
    port = {"name": "http", "port": ENGINE_PORT, "targetPort": "http", "protocol": "TCP"}
    return {
        **type_fields("Service"),
        "spec": {"clusterIP": "None", "selector": engine_labels(source.digest), "ports": [port]},
    }


def _deployment(source: PodSource, replicas: int) -> Manifest:
    queue = {QUEUE_LABEL: source.serving.queue} if source.serving.queue else {}
    return {
        **type_fields("Deployment"),
        "metadata": {"labels": queue},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": engine_labels(source.digest)},
            # No surge: a pool of devices rarely has room for another replica. Requests of a removed
            # replica go to the others, or wait for the new one.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "progressDeadlineSeconds": source.serving.startup_seconds + 60,
            # Kueue's integration of Deployments copies the queue to the pods. Its integration of
            # pods reads the label of the pod itself.
            "template": pod_template(source, child_labels(source.digest) | queue),
        },
    }


def _disruption_budget(source: PodSource) -> Manifest:
    selector = {"matchLabels": engine_labels(source.digest)}
    return {**type_fields("PodDisruptionBudget"), "spec": {**DISRUPTIONS, "selector": selector}}

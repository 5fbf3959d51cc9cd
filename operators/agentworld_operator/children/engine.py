"""One simulator's engine: a Deployment, its Service, its budget for disruptions, its manifest."""

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

# One replica at a time; a single one may go too, and one that is not ready always may, so that no
# node waits for ever to be drained: a budget alone keeps the last replica that never gets ready.
DISRUPTIONS: Manifest = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


def children(source: PodSource, owner: Manifest, replicas: int) -> list[Manifest]:
    """All that the engine is made of, in the order in which it is applied."""
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
    """Without an address of its own: the simulator service asks each replica by its own address,
    so that an episode stays with the replica that holds its prefix.
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
            # No replica beyond the wanted: a pool of devices seldom has room for one more. The
            # episodes of one that goes are answered by the others, or wait for it.
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

"""Custom resource definitions of other projects whose objects we create, or that create objects of
ours.

Trainer's and JobSet's use the types of Trainer's own Python package; Kueue's and KEDA's have no
package for this Python, and use types of the fields that our guide writes.
"""

from pydantic import BaseModel

from agentworld.cluster.api_resources import API_RESOURCES, ApiResource
from fakes import keda_objects, kueue_objects
from fakes.definitions import Object, definition

_KUEUE, _KEDA = "kueue.x-k8s.io/v1beta2", "keda.sh/v1alpha1"

RESOURCES = {
    "TrainJob": API_RESOURCES["TrainJob"],
    "JobSet": ApiResource("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "ResourceFlavor": ApiResource(_KUEUE, "resourceflavors", namespaced=False),
    "ClusterQueue": ApiResource(_KUEUE, "clusterqueues", namespaced=False),
    "LocalQueue": ApiResource(_KUEUE, "localqueues"),
    "ScaledObject": ApiResource(_KEDA, "scaledobjects"),
}
_RECORDS: dict[str, dict[str, type[BaseModel]]] = {
    "ResourceFlavor": {"spec": kueue_objects.FlavorSpec},
    "ClusterQueue": {"spec": kueue_objects.ClusterQueueSpec},
    "LocalQueue": {"spec": kueue_objects.LocalQueueSpec},
    "ScaledObject": {"spec": keda_objects.ScaledObjectSpec},
}
_TYPES = {"TrainJob": "TrainerV1alpha1TrainJob", "JobSet": "JobsetV1alpha2JobSet"}


def definition_of(kind: str) -> Object:
    """The definition that registers a kind at an API server."""
    return definition(kind, RESOURCES[kind], **(_RECORDS.get(kind) or _types(_TYPES[kind])))


def _types(name: str) -> dict[str, type[BaseModel]]:
    from kubeflow_trainer_api import models  # half a second

    return {"spec": getattr(models, f"{name}Spec"), "status": getattr(models, f"{name}Status")}

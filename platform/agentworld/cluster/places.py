"""Objects, and where an API server has those of each kind that we read or write."""

from typing import Any, NamedTuple

from agentworld.cluster.names import API_VERSION

Object = dict[str, Any]
"""As the API server has it, in JSON."""


class Place(NamedTuple):
    """Of all objects of a kind."""

    api_version: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Empty for the core of the API."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """Within the group."""
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str, name: str = "") -> str:
        """Of one object, or of all in a namespace."""
        root = "apis" if self.group else "api"
        inside = f"namespaces/{namespace}/" if self.namespaced else ""
        where = f"/{root}/{self.api_version}/{inside}{self.plural}"
        return f"{where}/{name}" if name else where


PLACES = {
    "Simulator": Place(API_VERSION, "simulators"),
    "SimulatorAlias": Place(API_VERSION, "simulatoraliases"),
    "TrainingSchedule": Place(API_VERSION, "trainingschedules"),
    "Deployment": Place("apps/v1", "deployments"),
    "Service": Place("v1", "services"),
    "ConfigMap": Place("v1", "configmaps"),
    "PodDisruptionBudget": Place("policy/v1", "poddisruptionbudgets"),
    "Pod": Place("v1", "pods"),
    "Event": Place("v1", "events"),
    "Job": Place("batch/v1", "jobs"),
    "TrainJob": Place("trainer.kubeflow.org/v1alpha1", "trainjobs"),
    "Lease": Place("coordination.k8s.io/v1", "leases"),
    "Secret": Place("v1", "secrets"),
    "Namespace": Place("v1", "namespaces", namespaced=False),
    "ValidatingWebhookConfiguration": Place(
        "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", namespaced=False
    ),
}


def typed(kind: str) -> dict[str, str]:
    """How an object of a kind begins."""
    return {"apiVersion": PLACES[kind].api_version, "kind": kind}

"""Objects, and where an API server has those of each kind that we read or write."""

from typing import Any, NamedTuple

from agentworld.cluster.names import API_VERSION

Object = dict[str, Any]
"""As the API server has it, in JSON."""


class ApiResource(NamedTuple):
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
        path = f"/{root}/{self.api_version}/{inside}{self.plural}"
        return f"{path}/{name}" if name else path


API_RESOURCES = {
    "Simulator": ApiResource(API_VERSION, "simulators"),
    "SimulatorAlias": ApiResource(API_VERSION, "simulatoraliases"),
    "TrainingSchedule": ApiResource(API_VERSION, "trainingschedules"),
    "Deployment": ApiResource("apps/v1", "deployments"),
    "Service": ApiResource("v1", "services"),
    "ConfigMap": ApiResource("v1", "configmaps"),
    "PodDisruptionBudget": ApiResource("policy/v1", "poddisruptionbudgets"),
    "Pod": ApiResource("v1", "pods"),
    "Event": ApiResource("v1", "events"),
    "Job": ApiResource("batch/v1", "jobs"),
    "TrainJob": ApiResource("trainer.kubeflow.org/v1alpha1", "trainjobs"),
    "Lease": ApiResource("coordination.k8s.io/v1", "leases"),
    "Secret": ApiResource("v1", "secrets"),
    "Namespace": ApiResource("v1", "namespaces", namespaced=False),
    "CustomResourceDefinition": ApiResource(
        "apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False
    ),
    "ValidatingWebhookConfiguration": ApiResource(
        "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", namespaced=False
    ),
}


def type_fields(kind: str) -> dict[str, str]:
    """How an object of a kind begins."""
    return {"apiVersion": API_RESOURCES[kind].api_version, "kind": kind}

"""The kinds of Kubernetes objects that this project uses, and their API paths."""

from typing import Any, NamedTuple

from agentworld.cluster.names import API_VERSION

Object = dict[str, Any]
"""An object in the API server's JSON form."""


class ApiResource(NamedTuple):
    """The API resource of a kind."""

    api_version: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The API version in the group."""
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str, name: str = "") -> str:
        """The path of one object, or of all objects in a namespace."""
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
    """The fields `apiVersion` and `kind` of an object."""
    return {"apiVersion": API_RESOURCES[kind].api_version, "kind": kind}

"""The fields of Kueue's objects that a guide writes: there is no package of its definitions.

After `site/static/examples/admin/single-clusterqueue-setup.yaml` of kubernetes-sigs/kueue (main, in
November 2026, `v1beta2`) and the page "Install" of its documentation. A field that is not here is
refused, though Kueue may know it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agentworld.cluster.terms import LabelKey, LabelValue, ObjectName

Framework = Literal["pod", "deployment", "batch/job", "trainer.kubeflow.org/trainjob"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Metadata(_Part):
    name: ObjectName
    namespace: ObjectName | None = None


class _FlavorSpec(_Part):
    node_labels: Annotated[dict[LabelKey, LabelValue], Field(alias="nodeLabels")]


class _Quota(_Part):
    name: str
    nominal_quota: Annotated[str | int, Field(alias="nominalQuota")]


class _Flavor(_Part):
    name: ObjectName
    resources: list[_Quota]


class _ResourceGroup(_Part):
    covered_resources: Annotated[list[str], Field(alias="coveredResources")]
    flavors: list[_Flavor]


class _ClusterQueueSpec(_Part):
    namespace_selector: Annotated[dict[str, object], Field(alias="namespaceSelector")]
    resource_groups: Annotated[list[_ResourceGroup], Field(alias="resourceGroups")]


class _LocalQueueSpec(_Part):
    cluster_queue: Annotated[ObjectName, Field(alias="clusterQueue")]


class _Object(_Part):
    api_version: Annotated[Literal["kueue.x-k8s.io/v1beta2"], Field(alias="apiVersion")]
    metadata: _Metadata


class ResourceFlavor(_Object):
    """Nodes of one kind."""

    kind: Literal["ResourceFlavor"]
    spec: _FlavorSpec


class ClusterQueue(_Object):
    """A quota."""

    kind: Literal["ClusterQueue"]
    spec: _ClusterQueueSpec


class LocalQueue(_Object):
    """What a namespace has of a quota."""

    kind: Literal["LocalQueue"]
    spec: _LocalQueueSpec


class _Integrations(_Part):
    frameworks: list[Framework]


class Configuration(_Part):
    """What a manager is started with."""

    integrations: _Integrations


KueueObject = Annotated[ResourceFlavor | ClusterQueue | LocalQueue, Field(discriminator="kind")]
OBJECT: TypeAdapter[KueueObject] = TypeAdapter(KueueObject)

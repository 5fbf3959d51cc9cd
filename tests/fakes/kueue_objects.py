"""The fields of Kueue's objects that a guide writes: there is no package of its definitions.

After kubernetes-sigs/kueue (`v1beta2`, read in November 2026): in `apis/kueue/v1beta2`
`clusterqueue_types.go` at commit 013c8f2 and `localqueue_types.go` at 02bc146, in
`config/components/crd/bases` `kueue.x-k8s.io_resourceflavors.yaml` at 01ed66f; and after the page
"Install" of its documentation. A field that is not here is refused, though Kueue may know it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agentworld.cluster.records.serving import Quantity
from agentworld.cluster.terms import LabelValue, ObjectName

Framework = Literal["pod", "deployment", "batch/job", "trainer.kubeflow.org/trainjob"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Metadata(_Part):
    name: ObjectName
    namespace: ObjectName | None = None


class FlavorSpec(_Part):
    """The nodes of a flavor."""

    node_labels: Annotated[dict[str, LabelValue], Field(alias="nodeLabels", max_length=8)]


class _Quota(_Part):
    name: str
    nominal_quota: Annotated[Quantity, Field(alias="nominalQuota")]


class _Flavor(_Part):
    name: ObjectName
    resources: list[_Quota]


class _ResourceGroup(_Part):
    covered_resources: Annotated[list[str], Field(alias="coveredResources")]
    flavors: list[_Flavor]


class _Selector(_Part):
    match_labels: Annotated[dict[str, LabelValue] | None, Field(alias="matchLabels")] = None


class ClusterQueueSpec(_Part):
    """The quotas and their users."""

    namespace_selector: Annotated[_Selector, Field(alias="namespaceSelector")]
    resource_groups: Annotated[list[_ResourceGroup], Field(alias="resourceGroups")]


class LocalQueueSpec(_Part):
    """The quota that a queue belongs to."""

    cluster_queue: Annotated[ObjectName, Field(alias="clusterQueue")]


class _Object(_Part):
    api_version: Annotated[Literal["kueue.x-k8s.io/v1beta2"], Field(alias="apiVersion")]
    metadata: _Metadata


class ResourceFlavor(_Object):
    """Nodes of one kind."""

    kind: Literal["ResourceFlavor"]
    spec: FlavorSpec


class ClusterQueue(_Object):
    """A quota."""

    kind: Literal["ClusterQueue"]
    spec: ClusterQueueSpec


class LocalQueue(_Object):
    """A namespace's share of a quota."""

    kind: Literal["LocalQueue"]
    spec: LocalQueueSpec


class _Integrations(_Part):
    frameworks: list[Framework]


class Configuration(_Part):
    """The configuration of a manager."""

    integrations: _Integrations


KueueObject = Annotated[ResourceFlavor | ClusterQueue | LocalQueue, Field(discriminator="kind")]
OBJECT: TypeAdapter[KueueObject] = TypeAdapter(KueueObject)

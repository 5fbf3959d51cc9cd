"""How a Simulator is served: its weights, its nodes, and its number of replicas."""

from typing import Annotated, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from agentworld.cluster.records.base import Check, Part, Url, with_checks
from agentworld.cluster.terms import Image, ImageByDigest, LabelKey, LabelValue, ObjectName
from agentworld.records.base import Label

Quantity = Annotated[
    int | str,
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 64,
        }
    ),
]
Quantities = Annotated[dict[str, Quantity], Field(max_length=64)]

_ONE_PLACE = Check(
    rule="[has(self.claim), has(self.url), has(self.image)].filter(place, place).size() == 1",
    message="name a claim, a url or an image, one of the three",
)
_CACHE_OF_URL = Check(
    rule="!has(self.cache) || has(self.url)",
    message="a cache keeps what is fetched from a url; name the url, or leave the cache out",
)
_ONE_SIZE = Check(
    rule="self.min <= self.max", message="min is more than max: raise max, or lower min"
)
_ANY_VALUE = Check(
    rule="self.operator != 'Exists' || !has(self.value) || self.value == ''",
    message="a taint that exists has any value; leave the value out",
)
_ANY_KEY = Check(
    rule="self.operator == 'Exists' || has(self.key)",
    message="without a key every taint is meant; write `operator: Exists`",
)
_ONLY_NO_EXECUTE = Check(
    rule="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
    message="nodes send pods away by `effect: NoExecute` alone; write that",
)


class Weights(Part):
    """Where the manifest's files are. An init container verifies each of them."""

    model_config = with_checks(_ONE_PLACE, _CACHE_OF_URL)

    claim: ObjectName | None = None
    """A PersistentVolumeClaim; it is mounted read-only."""
    image: ImageByDigest | None = None
    """An OCI image of the files, `REPOSITORY@sha256:DIGEST`, which a node pulls once for all of its
    pods. Needs Kubernetes 1.35 or newer.
    """
    path: Annotated[str, Field(max_length=1024)] = ""
    """The model's folder in the claim or the image."""
    url: Url | None = None
    """A folder in an object store, from which the files are downloaded."""
    cache: ObjectName | None = None
    """A PersistentVolumeClaim that caches downloaded files: the pods that mount it share one copy,
    which one of them downloads and verifies. Without it each pod downloads the files itself.
    """
    size_limit: Quantity | None = None
    """The most that a pod without a cache downloads; a pod that downloads more is evicted.

    Unset is 200Gi.
    """
    secret: ObjectName | None = None
    """A Secret whose entries become environment variables: the credentials of the object store."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if [self.claim, self.image, self.url].count(None) != 2:
            raise ValueError(_ONE_PLACE.message)
        if self.cache and not self.url:
            raise ValueError(_CACHE_OF_URL.message)
        return self


class Bounds(Part):
    """Bounds of autoscaling by open episodes."""

    model_config = with_checks(_ONE_SIZE)

    min: int = Field(0, ge=0)
    """0 stops the engine while no episode is open; the next episode waits until it has started."""
    max: int = Field(1, ge=1)
    episodes_per_replica: int = Field(32, ge=1)
    """Open episodes that one replica serves."""
    idle_seconds: int = Field(300, ge=0)
    """Scales down only after fewer replicas were enough for this long."""

    @model_validator(mode="after")
    def _are_ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(_ONE_SIZE.message)
        return self


class Toleration(Part):
    """Lets pods run on nodes with a taint."""

    model_config = with_checks(_ANY_VALUE, _ANY_KEY, _ONLY_NO_EXECUTE)

    key: LabelKey | None = None
    """Unset tolerates every taint."""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Unset tolerates every effect."""
    toleration_seconds: int | None = Field(None, ge=0)
    """How long a pod may stay on the node after the taint is added; unset is for ever."""

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ValueError(_ANY_VALUE.message)
        if self.operator == "Equal" and self.key is None:
            raise ValueError(_ANY_KEY.message)
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError(_ONLY_NO_EXECUTE.message)
        return self


Tolerations = Annotated[tuple[Toleration, ...], Field(max_length=64)]
"""Bounded, because the API server limits the cost of the checks of all items."""


class NodePool(Part):
    """The nodes that the engine runs on."""

    selector: Annotated[dict[str, LabelValue], Field(max_length=64)] = {}
    """Labels that a node must have."""
    tolerations: Tolerations = ()


class Resources(Part):
    """The resources of a replica."""

    requests: Quantities = {}
    limits: Quantities = {}
    """Limits also name devices, as `nvidia.com/gpu: 1`."""


class Serving(Part):
    """How the simulator is served. It does not affect observations and may change at any time."""

    replicas: int = Field(1, ge=0)
    """Replicas of the engine, without autoscaling."""
    bounds: Bounds | None = None
    """Scales the engine by open episodes, instead of `replicas`."""
    image: Image | None = None
    """The engine's image without a tag; its digest is the manifest's."""
    weights: Weights | None = None
    node_pool: NodePool = NodePool()
    resources: Resources = Resources()
    scratch: Quantity = "10Gi"
    """The most that a replica writes to its own files, such as compiled kernels."""
    shared_memory: Quantity = "8Gi"
    """The size of the engine's shared memory; it counts as the container's memory."""
    queue: LabelValue | None = None
    """A LocalQueue of Kueue for the engine's pods."""
    suspend: bool = False
    """Runs no engine, even if runs or episodes wait for it."""
    tenants: Annotated[
        tuple[Label, ...],
        Field(max_length=1024, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ()
    """Tenants that may open runs with it, by their names in the access file; empty allows all.

    An open run is not affected.
    """
    startup_seconds: int = Field(900, ge=10)
    """How long a replica may take to load its weights and become ready."""

"""How a Simulator is served: its weights, its nodes, and how many replicas there are."""

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
_SENDS_AWAY = Check(
    rule="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
    message="nodes send pods away by `effect: NoExecute` alone; write that",
)


class Weights(Part):
    """Where the files are that the manifest names. An init container verifies each of them."""

    model_config = with_checks(_ONE_PLACE, _CACHE_OF_URL)

    claim: ObjectName | None = None
    """A PersistentVolumeClaim; it is mounted read-only."""
    image: ImageByDigest | None = None
    """An OCI image of the files, `REPOSITORY@sha256:DIGEST`, which a node pulls once for all of its
    pods. Kubernetes 1.35 or newer mounts one."""
    path: Annotated[str, Field(max_length=1024)] = ""
    """The model's folder in the claim or the image."""
    url: Url | None = None
    """A folder in an object store, from which the files are fetched."""
    cache: ObjectName | None = None
    """A PersistentVolumeClaim that keeps what was fetched: pods that mount it share one copy, which
    the first of them fetches and verifies. Without it each pod does so for itself."""
    size_limit: Quantity | None = None
    """The most that a pod without a cache fetches; one that fetches more is evicted. Unset is
    200Gi."""
    secret: ObjectName | None = None
    """A Secret whose entries are environment variables: what the object store asks for."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if [self.claim, self.image, self.url].count(None) != 2:
            raise ValueError(_ONE_PLACE.message)
        if self.cache and not self.url:
            raise ValueError(_CACHE_OF_URL.message)
        return self


class Bounds(Part):
    """How many replicas there may be where open episodes decide."""

    model_config = with_checks(_ONE_SIZE)

    min: int = Field(0, ge=0)
    """0 lets the engine go while no episode is open; the first one waits until it has started."""
    max: int = Field(1, ge=1)
    episodes_per_replica: int = Field(32, ge=1)
    """Open episodes that one replica is enough for."""
    idle_seconds: int = Field(300, ge=0)
    """Replicas go only after fewer were enough for so long."""

    @model_validator(mode="after")
    def _are_ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(_ONE_SIZE.message)
        return self


class Toleration(Part):
    """Lets pods run on nodes with a taint."""

    model_config = with_checks(_ANY_VALUE, _ANY_KEY, _SENDS_AWAY)

    key: LabelKey | None = None
    """Absent tolerates every taint."""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Absent tolerates every effect."""
    toleration_seconds: int | None = Field(None, ge=0)
    """How long a pod stays that is to go; absent for ever."""

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ValueError(_ANY_VALUE.message)
        if self.operator == "Equal" and self.key is None:
            raise ValueError(_ANY_KEY.message)
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError(_SENDS_AWAY.message)
        return self


Tolerations = Annotated[tuple[Toleration, ...], Field(max_length=64)]
"""Bounded, for the API server bounds what its checks of all of them may cost."""


class NodePool(Part):
    """Which nodes the engine runs on."""

    selector: Annotated[dict[str, LabelValue], Field(max_length=64)] = {}
    """Labels that a node has."""
    tolerations: Tolerations = ()


class Resources(Part):
    """What a replica of the engine is given."""

    requests: Quantities = {}
    limits: Quantities = {}
    """Devices are named here, as `nvidia.com/gpu: 1`."""


class Serving(Part):
    """How the simulator is served. None of it shapes an observation; all of it may change."""

    replicas: int = Field(1, ge=0)
    """Of the engine, where no bounds are given."""
    bounds: Bounds | None = None
    """Open episodes decide how many replicas there are, and `replicas` does not."""
    image: Image | None = None
    """The engine's image without a tag; its digest is the manifest's."""
    weights: Weights | None = None
    node_pool: NodePool = NodePool()
    resources: Resources = Resources()
    scratch: Quantity = "10Gi"
    """The most that a replica writes to its own files, such as compiled kernels."""
    shared_memory: Quantity = "8Gi"
    """The most that the engine's processes exchange through memory; it counts as the container's
    memory."""
    queue: LabelValue | None = None
    """Of Kueue, which admits the engine's pods."""
    suspend: bool = False
    """No engine runs, whatever waits for it."""
    tenants: Annotated[
        tuple[Label, ...],
        Field(max_length=1024, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ()
    """Who may open runs with it, by the names that the access file has; empty lets everybody. A
    run that is open stays open."""
    startup_seconds: int = Field(900, ge=10)
    """How long a replica may take to load its weights and be ready."""

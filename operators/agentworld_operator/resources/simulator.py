"""A Simulator: which world it is, for ever, and how it is served, for now."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, WithJsonSchema, model_validator

from agentworld.records.base import Digest, Label
from agentworld.records.simulator import SimulatorManifest
from agentworld_operator.resources.base import (
    Check,
    Column,
    Condition,
    Conditions,
    Kind,
    Part,
    checked,
)

Quantity = Annotated[
    int | str,
    WithJsonSchema(
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    ),
]

IMMUTABLE = Check(
    rule="self == oldSelf",
    message="an identity never changes: create a new Simulator and move the alias to it",
)
_ONE_IDENTITY = Check(
    rule="has(self.manifest) != has(self.reference)",
    message="give the manifest or a reference to it, one of the two",
)
_ONE_PLACE = Check(
    rule="has(self.claim) != has(self.url)", message="name a claim or a url, one of the two"
)
_ONE_SIZE = Check(
    rule="self.min <= self.max", message="min is more than max: raise max, or lower min"
)


class Reference(Part):
    """Where a manifest is kept."""

    url: Annotated[str, StringConstraints(min_length=1)]
    """Of the manifest's file in an object store."""
    digest: Digest
    """The simulator's; a file with another one is refused."""


class Identity(Part):
    """Everything that shapes an observation. It never changes."""

    model_config = checked(IMMUTABLE, _ONE_IDENTITY)

    manifest: SimulatorManifest | None = None
    """The pinned manifest, as `agentworld simulator show --json` prints it."""
    reference: Reference | None = None
    """Where to read the manifest, instead of having it here."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.manifest is None) == (self.reference is None):
            raise ValueError(_ONE_IDENTITY.message)
        return self


class Weights(Part):
    """Where the files are that the manifest names. An init container verifies each of them."""

    model_config = checked(_ONE_PLACE)

    claim: str | None = None
    """A PersistentVolumeClaim; it is mounted read-only."""
    path: str = ""
    """The model's folder in the claim."""
    url: str | None = None
    """A folder in an object store, from which each pod fetches the files."""
    secret: str | None = None
    """A Secret whose entries are environment variables: what the object store asks for."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.claim is None) == (self.url is None):
            raise ValueError(_ONE_PLACE.message)
        return self


class Bounds(Part):
    """How many replicas there may be where open episodes decide."""

    model_config = checked(_ONE_SIZE)

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

    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class NodePool(Part):
    """Which nodes the engine runs on."""

    selector: dict[str, str] = {}
    """Labels that a node has."""
    tolerations: tuple[Toleration, ...] = ()


class Resources(Part):
    """What a replica of the engine is given."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    """Devices are named here, as `nvidia.com/gpu: 1`."""


class Serving(Part):
    """How the simulator is served. None of it shapes an observation; all of it may change."""

    replicas: int = Field(1, ge=0)
    """Of the engine, where no bounds are given."""
    bounds: Bounds | None = None
    """Open episodes decide how many replicas there are, and `replicas` does not."""
    image: str | None = None
    """The engine's image without a tag; its digest is the manifest's."""
    weights: Weights | None = None
    node_pool: NodePool = NodePool()
    resources: Resources = Resources()
    queue: str | None = None
    """Of Kueue, which admits the engine's pods."""
    suspend: bool = False
    """No engine runs, whatever waits for it."""
    tenants: Annotated[
        tuple[Label, ...], Field(json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()
    """Who may open runs with it, by the names that the access file has; empty lets everybody. A
    run that is open stays open."""
    startup_seconds: int = Field(900, ge=10)
    """How long a replica may take to load its weights and be ready."""


class SimulatorSpec(Part):
    """What is wanted."""

    identity: Identity
    serving: Serving = Serving()


class SimulatorStatus(Part):
    """What is so."""

    observed_generation: int = 0
    """Of the spec that this was said of."""
    digest: Digest | None = None
    """Of the manifest, as the operator computed it; agents' records name it."""
    replicas: int = 0
    """Of the engine, ready or not."""
    ready_replicas: int = 0
    selector: str = ""
    """Finds the engine's pods."""
    url: str | None = None
    """Where runs are opened with it: the service, which alone asks the engine."""
    open_episodes: int = 0
    accelerators: tuple[str, ...] = ()
    """What the engine computes on: devices and nodes, of each replica where they differ. Episodes
    are recorded with it."""
    conditions: Conditions = ()
    """Verified, EngineReady, Ready and Degraded."""

    def condition(self, type_: str) -> Condition | None:
        """What is said of one thing, if anything."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


_READY = '.status.conditions[?(@.type=="Ready")]'

SIMULATOR = Kind(
    kind="Simulator",
    plural="simulators",
    short_name="sim",
    about="A pinned world: a digest over all that shapes its observations, and how it is served.",
    spec=SimulatorSpec,
    status=SimulatorStatus,
    columns=(
        Column("Ready", "string", f"{_READY}.status"),
        Column("Reason", "string", f"{_READY}.reason"),
        Column("Replicas", "integer", ".status.readyReplicas"),
        Column("Episodes", "integer", ".status.openEpisodes"),
        Column("Age", "date", ".metadata.creationTimestamp"),
        Column("Digest", "string", ".status.digest", wide=True),
        Column("URL", "string", ".status.url", wide=True),
    ),
    scale={
        "specReplicasPath": ".spec.serving.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
)

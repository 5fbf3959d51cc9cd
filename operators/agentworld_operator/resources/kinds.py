"""The kinds of custom resources: their records, and the columns of `kubectl get`."""

from typing import Literal, NamedTuple

from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.cluster.records.base import Part
from agentworld.cluster.records.schedule import ScheduleSpec, ScheduleStatus
from agentworld.cluster.records.simulator import SimulatorSpec, SimulatorStatus


class Column(NamedTuple):
    """A column of `kubectl get`."""

    name: str
    type: Literal["string", "integer", "boolean", "date"]
    path: str
    wide: bool = False


class Kind(NamedTuple):
    """A custom resource."""

    kind: str
    plural: str
    short_name: str
    summary: str
    spec: type[Part]
    status: type[Part]
    columns: tuple[Column, ...]
    scale: dict[str, str] | None = None
    """The paths of the scale subresource, if it has one."""


_AGE = Column("Age", "date", ".metadata.creationTimestamp")
_DIGEST = Column("Digest", "string", ".status.digest", wide=True)


def _condition(type_: str, field: str = "status") -> str:
    """The JSON path of a condition's field."""
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


SIMULATOR = Kind(
    kind="Simulator",
    plural="simulators",
    short_name="sim",
    summary="A pinned world: a digest over all that shapes its observations, and how it is served.",
    spec=SimulatorSpec,
    status=SimulatorStatus,
    columns=(
        Column("Ready", "string", _condition("Ready")),
        Column("Reason", "string", _condition("Ready", "reason")),
        Column("Replicas", "integer", ".status.readyReplicas"),
        Column("Episodes", "integer", ".status.openEpisodes"),
        _AGE,
        _DIGEST,
        Column("URL", "string", ".status.url", wide=True),
    ),
    scale={
        "specReplicasPath": ".spec.serving.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
)

SIMULATOR_ALIAS = Kind(
    kind="SimulatorAlias",
    plural="simulatoraliases",
    short_name="simalias",
    summary="A name for people that means a Simulator. It is resolved once, when a run is opened.",
    spec=AliasSpec,
    status=AliasStatus,
    columns=(
        Column("Simulator", "string", ".spec.simulator"),
        Column("Canary", "string", ".spec.canary.simulator"),
        Column("Recorded", "string", _condition("Recorded")),
        _AGE,
        _DIGEST,
    ),
)

TRAINING_SCHEDULE = Kind(
    kind="TrainingSchedule",
    plural="trainingschedules",
    short_name="tsched",
    summary="A pipeline that Kubeflow starts at the times of a cron expression, one run at a time.",
    spec=ScheduleSpec,
    status=ScheduleStatus,
    columns=(
        Column("Cron", "string", ".spec.cron"),
        Column("Suspend", "boolean", ".spec.suspend"),
        Column("Last", "date", ".status.lastRun.started"),
        Column("State", "string", ".status.lastRun.state"),
        Column("Next", "string", ".status.nextRun"),
        Column("Scheduled", "string", _condition("Scheduled")),
        _AGE,
        Column("Pipeline", "string", ".spec.pipeline", wide=True),
        Column("Recipe", "string", ".spec.recipe", wide=True),
    ),
)

KINDS = (SIMULATOR, SIMULATOR_ALIAS, TRAINING_SCHEDULE)

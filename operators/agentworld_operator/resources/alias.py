"""A SimulatorAlias: a name for people that means a Simulator, and may move to another one."""

from pydantic import Field

from agentworld.records.base import Digest
from agentworld_operator.resources.base import Column, Condition, Conditions, Kind, Part, Words


class Canary(Part):
    """A second Simulator that a part of all new runs is opened with."""

    simulator: Words
    """The name of a Simulator in this namespace."""
    percent: int = Field(ge=1, le=99)
    """Of runs; a run's episodes are all played with the simulator that it was opened with."""


class Gate(Part):
    """What the report has to show before the name may move."""

    metric: Words
    """A figure's name in the report, as `live_gain` or `exact_match`."""
    least: float = Field(allow_inf_nan=False)
    """How large the figure has to be."""


class Override(Part):
    """Lets the name move whatever the gate says; the history tells it."""

    reason: Words
    """Why this is right."""


class AliasSpec(Part):
    """What is wanted."""

    simulator: Words
    """The name of the Simulator in this namespace that runs are opened with."""
    canary: Canary | None = None
    """A second one, tried with a part of the runs; the gate is not asked about it."""
    gate: tuple[Gate, ...] = Field((), max_length=64)
    """All of it has to be passed by the report."""
    report: Digest | None = None
    """Of the evaluation of the simulator, or of its weights, that shows that the gate is passed."""
    override: Override | None = None
    """A reason to move although the gate is not passed."""


class AliasStatus(Part):
    """What is so."""

    observed_generation: int = 0
    """Of the spec that this was said of."""
    digest: Digest | None = None
    """Of the simulator that the name means now."""
    canary_digest: Digest | None = None
    """Of the canary, where there is one."""
    conditions: Conditions = ()
    """Resolved and Recorded."""

    def condition(self, type_: str) -> Condition | None:
        """What is said of one thing, if anything."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


SIMULATOR_ALIAS = Kind(
    kind="SimulatorAlias",
    plural="simulatoraliases",
    short_name="simalias",
    about="A name for people that means a Simulator. It is resolved once, when a run is opened.",
    spec=AliasSpec,
    status=AliasStatus,
    columns=(
        Column("Simulator", "string", ".spec.simulator"),
        Column("Canary", "string", ".spec.canary.simulator"),
        Column("Recorded", "string", '.status.conditions[?(@.type=="Recorded")].status'),
        Column("Age", "date", ".metadata.creationTimestamp"),
        Column("Digest", "string", ".status.digest", wide=True),
    ),
)

"""A SimulatorAlias: asks that a name for people means a Simulator.

It only asks. The name means what the ledger says.
"""

from pydantic import Field

from agentworld.cluster.records.base import Condition, Conditions, Part, ShortText
from agentworld.records.base import Digest
from agentworld.records.gate import Gate


class Canary(Part):
    """A second Simulator that a part of all new runs is opened with."""

    simulator: ShortText
    """The name of a Simulator in this namespace."""
    percent: int = Field(ge=1, le=99)
    """Of runs; a run's episodes are all played with the simulator that it was opened with."""


class Override(Part):
    """Lets the name move whatever the gate says; the history tells it."""

    reason: ShortText
    """Why this is right."""


class AliasSpec(Part):
    """What is wanted."""

    simulator: ShortText
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
    """Of the simulator that the name means now, as the ledger says."""
    canary_digest: Digest | None = None
    """Of its canary, as the ledger says."""
    conditions: Conditions = ()
    """Resolved and Recorded."""

    def condition(self, type_: str) -> Condition | None:
        """What is said of one thing, if anything."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

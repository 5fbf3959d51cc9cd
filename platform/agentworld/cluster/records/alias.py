"""A SimulatorAlias: requests that an alias points at a Simulator.

The ledger, not this object, has the alias's current target.
"""

from pydantic import Field

from agentworld.cluster.records.base import Condition, Conditions, Part, ShortText
from agentworld.records.base import Digest
from agentworld.records.gate import Gate


class Canary(Part):
    """A second Simulator that gets a share of all new runs."""

    simulator: ShortText
    """The name of a Simulator in this namespace."""
    percent: int = Field(ge=1, le=99)
    """Share of new runs; all episodes of a run use the simulator with which it was opened."""


class Override(Part):
    """Moves the alias although the gate refuses; the history records it."""

    reason: ShortText
    """The reason."""


class AliasSpec(Part):
    """The desired state."""

    simulator: ShortText
    """The name of the Simulator in this namespace with which runs are opened."""
    canary: Canary | None = None
    """A second Simulator that gets a share of new runs; the gate does not apply to it."""
    gate: tuple[Gate, ...] = Field((), max_length=64)
    """Bounds that the report must meet."""
    report: Digest | None = None
    """The digest of the evaluation, of the simulator or its weights, that meets the gate."""
    override: Override | None = None
    """A reason to move although the gate refuses."""


class AliasStatus(Part):
    """The observed state."""

    observed_generation: int = 0
    """The generation of the spec that this status describes."""
    digest: Digest | None = None
    """The digest of the alias's current simulator in the ledger."""
    canary_digest: Digest | None = None
    """The digest of its canary in the ledger."""
    conditions: Conditions = ()
    """Resolved and Recorded."""

    def condition(self, type_: str) -> Condition | None:
        """The condition of a type; null if there is none."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

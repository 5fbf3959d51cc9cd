"""A Simulator: which world it is, for ever, and how it is served, for now."""

from typing import Self

from pydantic import model_validator

from agentworld.cluster.records.base import (
    Check,
    Condition,
    Conditions,
    LongText,
    Part,
    Url,
    with_checks,
)
from agentworld.cluster.records.serving import Serving
from agentworld.records.base import Digest
from agentworld.records.simulator import SimulatorManifest

IMMUTABLE = Check(
    rule="self == oldSelf",
    message="an identity never changes: create a new Simulator and move the alias to it",
)
_ONE_IDENTITY = Check(
    rule="has(self.manifest) != has(self.reference)",
    message="give the manifest or a reference to it, one of the two",
)


class Reference(Part):
    """Where a manifest is kept."""

    url: Url
    """Of the manifest's file in an object store."""
    digest: Digest
    """The simulator's; a file with another one is refused."""


class Identity(Part):
    """Everything that shapes an observation. It never changes."""

    model_config = with_checks(IMMUTABLE, _ONE_IDENTITY)

    manifest: SimulatorManifest | None = None
    """The pinned manifest, as `agentworld simulator show --json` prints it."""
    reference: Reference | None = None
    """Where to read the manifest, instead of having it here."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.manifest is None) == (self.reference is None):
            raise ValueError(_ONE_IDENTITY.message)
        return self


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
    selector: LongText = ""
    """Finds the engine's pods."""
    url: Url | None = None
    """Where runs are opened with it: the service, which alone asks the engine."""
    open_episodes: int = 0
    accelerators: tuple[LongText, ...] = ()
    """What the engine computes on: devices and nodes, of each replica where they differ. Episodes
    are recorded with it."""
    conditions: Conditions = ()
    """Verified, EngineReady, Ready and Degraded."""

    def condition(self, type_: str) -> Condition | None:
        """What is said of one thing, if anything."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

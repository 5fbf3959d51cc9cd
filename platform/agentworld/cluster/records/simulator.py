"""A Simulator: its identity, which never changes, and how it is served."""

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
    """Where a manifest is stored."""

    url: Url
    """The URL of the manifest's file in an object store."""
    digest: Digest
    """The simulator's digest; a file with another digest is refused."""


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
    """The desired state."""

    identity: Identity
    serving: Serving = Serving()


class SimulatorStatus(Part):
    """The observed state."""

    observed_generation: int = 0
    """The generation of the spec that this status describes."""
    digest: Digest | None = None
    """The digest of the manifest, as the operator computed it; agents' records have it."""
    replicas: int = 0
    """Replicas of the engine, ready or not."""
    ready_replicas: int = 0
    selector: LongText = ""
    """The label selector of the engine's pods."""
    url: Url | None = None
    """The address of the service that opens runs; only the service calls the engine."""
    open_episodes: int = 0
    accelerators: tuple[LongText, ...] = ()
    """The engine's accelerators: devices and node labels, of each replica if they differ.

    Episodes record them.
    """
    conditions: Conditions = ()
    """Verified, EngineReady, Ready and Degraded."""

    def condition(self, type_: str) -> Condition | None:
        """The condition of a type; null if there is none."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

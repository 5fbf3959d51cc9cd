"""The catalog of a process's simulators: one on one machine, or all of a cluster.

A run is opened with one of them. Its digest in the ledger alone decides which simulator answers for
the run's episodes.
"""

from typing import NamedTuple, Protocol

from agentworld.engine.base import Engine
from agentworld.records.base import Digest
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving.service import Accelerators
from agentworld.serving.telemetry.metrics import States


class SimulatorRequest(NamedTuple):
    """The simulator that a new run asks for, and the caller's tenant."""

    simulator: str
    """An alias or a digest; empty if none is named."""
    run: str | None
    """The run's name, which decides about a canary; null gets no canary."""
    tenant: str

    @property
    def is_by_digest(self) -> bool:
        """A digest has a colon, and an alias does not."""
        return self.simulator.startswith("sha256:")


class ConnectedSimulator(NamedTuple):
    """A simulator with its connected engine."""

    manifest: SimulatorManifest
    engine: Engine
    states: States = dict
    """The breaker state of each replica of the engine."""
    accelerators: Accelerators = tuple


class Catalog(Protocol):
    """Finds simulators and resolves aliases; raises a typed error if they do not exist."""

    @property
    def single(self) -> ConnectedSimulator | None:
        """The only simulator, if there is exactly one for the life of the process."""
        ...

    async def find(self, simulator: Digest) -> ConnectedSimulator:
        """Connects to a simulator by its digest; not called if there is only one."""
        ...

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """The current simulator of an alias, or the digest itself.

        Raises AccessError if the tenant may not open runs with it.
        """
        ...

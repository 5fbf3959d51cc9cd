"""Which simulators there are for a process: one on one machine, or all of a cluster.

A run is opened with one of them, whose digest is in the ledger from then on; nothing but that
says who answers for its episodes.
"""

from typing import NamedTuple, Protocol

from agentworld.engine.base import Engine
from agentworld.records.base import Digest
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving.service import Accelerators
from agentworld.serving.telemetry.metrics import States


class SimulatorRequest(NamedTuple):
    """What a run that is opened asks for, and for whom."""

    simulator: str
    """An alias or a digest; empty where it names none."""
    run: str | None
    """Its name, which decides whether it gets a canary; null where none is opened, which gets none.
    """
    tenant: str

    @property
    def is_by_digest(self) -> bool:
        """An alias holds no colon."""
        return self.simulator.startswith("sha256:")


class ConnectedSimulator(NamedTuple):
    """A simulator, and what answers as it was pinned."""

    manifest: SimulatorManifest
    engine: Engine
    states: States = dict
    """Whether each replica of the engine is asked."""
    accelerators: Accelerators = tuple


class Catalog(Protocol):
    """Knows simulators and aliases; raises a typed error for what is not there."""

    @property
    def single(self) -> ConnectedSimulator | None:
        """The one entry, where there is exactly one for good."""
        ...

    async def find(self, simulator: Digest) -> ConnectedSimulator:
        """A simulator by its digest, connected anew; nobody asks for the only one."""
        ...

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """What an alias means now, or the digest itself.

        Raises AccessError where the tenant may open no runs with it.
        """
        ...

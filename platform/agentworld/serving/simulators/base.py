"""The simulators that a process serves: one on one machine, many where each has engines of its own.

A run is opened with one of them, whose digest is in the ledger from then on; nothing but that
says who answers for its episodes.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from agentworld.records.base import Digest
from agentworld.serving.service import SimulatorService


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


class Simulators(Protocol):
    """Raises a typed error for a simulator that it does not serve."""

    @property
    def only(self) -> Digest | None:
        """The one that there is, where there is exactly one for good."""
        ...

    @property
    def connected(self) -> Mapping[Digest, SimulatorService]:
        """Those that can answer now."""
        ...

    def check(self, simulator: Digest) -> None:
        """Raises Conflict for one whose runs are nothing to this process, not even to be read."""
        ...

    async def find(self, simulator: Digest) -> SimulatorService:
        """What answers for a simulator, connected now if need be."""
        ...

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """The simulator that a run is opened with; raises AccessError where the tenant may not."""
        ...

    async def close(self) -> None:
        """Lets go of all engines."""
        ...

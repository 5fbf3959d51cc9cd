"""The simulator of one machine: whatever belongs to another one is refused."""

import asyncio

from agentworld.ledger.aliases import Aliases
from agentworld.records.base import Digest
from agentworld.serving.service import SimulatorService, another
from agentworld.serving.simulators.base import SimulatorRequest


class OneSimulator:
    """Serves one; it is meant where a run names none."""

    def __init__(self, service: SimulatorService, aliases: Aliases) -> None:
        self.only: Digest | None = service.digest
        self.connected = {service.digest: service}
        self._service = service
        self._aliases = aliases

    def check(self, simulator: Digest) -> None:
        """Raises Conflict for any other."""
        if simulator != self._service.digest:
            raise another(simulator, self._service.digest)

    async def find(self, simulator: Digest) -> SimulatorService:
        """The one."""
        self.check(simulator)
        return self._service

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """As the ledger's aliases say; it is for every tenant of the access file."""
        if not request.simulator:
            return self._service.digest
        return await asyncio.to_thread(self._aliases.resolve, request.simulator, request.run)

    async def close(self) -> None:
        """Lets go of its engine."""
        await self._service.close()

"""The catalog of one machine: one simulator, under the aliases of the ledger."""

import asyncio
from typing import NamedTuple

from agentworld.ledger.aliases import Aliases
from agentworld.records.base import Digest
from agentworld.serving.service import wrong_simulator
from agentworld.serving.simulators.base import ConnectedSimulator, SimulatorRequest


class OneSimulator(NamedTuple):
    """Every tenant of the access file may use it."""

    single: ConnectedSimulator
    aliases: Aliases

    async def find(self, simulator: Digest) -> ConnectedSimulator:
        """Raises Conflict, because this process serves no other simulator."""
        raise wrong_simulator(simulator, self.single.manifest.digest)

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """By the ledger's aliases."""
        return await asyncio.to_thread(self.aliases.resolve, request.simulator, request.run)

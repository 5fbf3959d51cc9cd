"""Whose things are, and which simulator's. Nothing else of them is read: it would tell."""

import asyncio

from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.runs import Owner
from agentworld.serving.episodes.quota import Kind

_MOST_OWNERS = 100_000


class Owners:
    """What a ledger says of runs; whose a run is never changes, and is asked once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._owners: dict[str, Owner] = {}

    async def of(self, run: str) -> Owner:
        """The tenant and the simulator of a run; raises NotFound."""
        owner = self._owners.get(run)
        if owner is None:
            owner = self._owners[run] = await asyncio.to_thread(self._ledger.owner, run)
            if len(self._owners) > _MOST_OWNERS:
                del self._owners[next(iter(self._owners))]
        return owner

    def knows(self, run: str, tenant: str) -> bool:
        """Whether it was asked before and said that the run is this tenant's."""
        owner = self._owners.get(run)
        return owner is not None and owner.tenant == tenant

    async def run_of(self, episode: str) -> str:
        """Raises NotFound."""
        return await asyncio.to_thread(self._ledger.run_of, episode)

    async def num_open(self, kind: Kind, tenant: str) -> int:
        """How many of a tenant's runs, or of its episodes, are open."""
        counts = self._ledger.counts
        count = counts.num_open_runs if kind == "runs" else counts.num_open_episodes
        return await asyncio.to_thread(count, tenant=tenant)

    async def has(self, kind: Kind, name: str, tenant: str) -> bool:
        """Whether a run, or an episode, of this name is the tenant's."""
        try:
            run = name if kind == "runs" else await self.run_of(name)
            return (await self.of(run)).tenant == tenant
        except NotFound:
            return False

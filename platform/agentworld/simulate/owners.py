"""Whose things are, and how many somebody has. Nothing else of them is read: it would tell."""

import asyncio

from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.simulate.allowance import Kind

_MOST_KNOWN = 100_000


class Owners:
    """What a ledger says of tenants; whose a run is never changes, and is asked once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tenants: dict[str, str] = {}

    async def tenant_of(self, run: str) -> str:
        """Raises NotFound."""
        tenant = self._tenants.get(run)
        if tenant is None:
            tenant = self._tenants[run] = await asyncio.to_thread(self._ledger.tenant, run)
            if len(self._tenants) > _MOST_KNOWN:
                del self._tenants[next(iter(self._tenants))]
        return tenant

    def knows(self, run: str, tenant: str) -> bool:
        """Whether it was asked before and said so."""
        return self._tenants.get(run) == tenant

    async def run_of(self, episode: str) -> str:
        """Raises NotFound."""
        return await asyncio.to_thread(self._ledger.run_of, episode)

    async def num_open(self, kind: Kind, tenant: str) -> int:
        """How many of a tenant's runs, or of its episodes, are open."""
        ledger = self._ledger
        count = ledger.num_open_runs if kind == "runs" else ledger.num_open_episodes
        return await asyncio.to_thread(count, tenant)

    async def has(self, kind: Kind, name: str, tenant: str) -> bool:
        """Whether a run, or an episode, of this name is the tenant's."""
        try:
            run = name if kind == "runs" else await self.run_of(name)
            return await self.tenant_of(run) == tenant
        except NotFound:
            return False

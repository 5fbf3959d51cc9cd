"""Enforces the tenants' limits: open runs and episodes are counted in the ledger, rates in this
process. Nothing else of another tenant is read, because that could reveal it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from agentworld.access import Access
from agentworld.access.limits import NO_LIMITS, Rates
from agentworld.errors import AccessError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.runs import Owner

Kind = Literal["runs", "episodes"]

_FULL_PAUSE_SECONDS = 1.0
_MOST_OWNERS = 100_000


class Owners:
    """Caches the owners of runs, which never change."""

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

    def is_known_owner(self, run: str, tenant: str) -> bool:
        """Whether the cache knows the run as this tenant's."""
        owner = self._owners.get(run)
        return owner is not None and owner.tenant == tenant

    async def run_of(self, episode: str) -> str:
        """The run of an episode; raises NotFound."""
        return await asyncio.to_thread(self._ledger.run_of, episode)

    async def num_open(self, kind: Kind, tenant: str) -> int:
        """The number of a tenant's open runs or episodes."""
        counts = self._ledger.counts
        count = counts.num_open_runs if kind == "runs" else counts.num_open_episodes
        return await asyncio.to_thread(count, tenant=tenant)

    async def has(self, kind: Kind, name: str, tenant: str) -> bool:
        """Whether the tenant has a run or an episode of this name."""
        try:
            run = name if kind == "runs" else await self.run_of(name)
            return (await self.of(run)).tenant == tenant
        except NotFound:
            return False


class _Admission:
    """The admission of one tenant's runs or episodes."""

    def __init__(self, kind: Kind, tenant: str) -> None:
        self.kind = kind
        self.tenant = tenant
        self.lock = asyncio.Lock()
        """The lock for counting; admitted ones are opened concurrently, without it."""
        self.num_admitted = 0
        """The number of admitted ones that may not be in the ledger yet."""
        self.ended = asyncio.Event()


class Quota:
    """The quotas of all tenants.

    Concurrent requests open exactly as many as sequential ones would.
    """

    def __init__(self, access: Access, owners: Owners) -> None:
        self._access = access
        self._owners = owners
        self._admissions: dict[tuple[Kind, str], _Admission] = {}
        self._rates: dict[str, Rates] = {}

    @asynccontextmanager
    async def run(self, tenant: str, name: str | None) -> AsyncIterator[None]:
        """Admits a run while it is opened; raises AccessError if too many are open."""
        async with self._open("runs", tenant, name, self._access.limits(tenant).open_runs):
            yield

    @asynccontextmanager
    async def episode(self, tenant: str, name: str | None) -> AsyncIterator[None]:
        """Admits an episode while it is begun; raises AccessError if too many are open."""
        limit = self._access.limits(tenant).open_episodes
        async with self._open("episodes", tenant, name, limit):
            yield

    def step(self, tenant: str) -> Rates | None:
        """Counts a step; raises AccessError if the tenant has reached a limit."""
        rates = self._rates_of(tenant)
        if rates is not None:
            rates.take_step(tenant)
        return rates

    def check(self, tenant: str) -> Rates | None:
        """Raises as `step` does, without counting."""
        rates = self._rates_of(tenant)
        if rates is not None:
            rates.check(tenant)
        return rates

    def _rates_of(self, tenant: str) -> Rates | None:
        limits = self._access.limits(tenant)
        if limits is NO_LIMITS:
            return None
        rates = self._rates.get(tenant)
        # The limits are the same object until the file is reloaded.
        if rates is None or (rates.limits is not limits and rates.limits != limits):
            rates = self._rates[tenant] = Rates(limits)
        return rates if rates.is_bounded else None

    @asynccontextmanager
    async def _open(
        self, kind: Kind, tenant: str, name: str | None, limit: int | None
    ) -> AsyncIterator[None]:
        if limit is None:
            yield
            return
        admission = self._admissions.setdefault((kind, tenant), _Admission(kind, tenant))
        async with admission.lock:
            await self._wait_for_capacity(admission, name, limit)
            admission.num_admitted += 1
        try:
            yield
        finally:
            admission.num_admitted -= 1
            admission.ended.set()

    async def _wait_for_capacity(self, admission: _Admission, name: str | None, limit: int) -> None:
        """Returns when one more may be opened; raises AccessError if too many are open.

        One that is written during the count may be counted twice; then it is counted again.
        """
        kind, tenant = admission.kind, admission.tenant
        while True:
            admission.ended.clear()
            num_admitted = admission.num_admitted
            num_open = await self._owners.num_open(kind, tenant)
            if num_open + num_admitted < limit:
                return
            if num_open >= limit:
                # a repeated request whose response was lost opens nothing
                if name and await self._owners.has(kind, name, tenant):
                    return
                raise AccessError(
                    f"tenant {tenant} has {num_open} {kind} open and may have {limit}; close one"
                    " first",
                    kind="limit",
                    retry_after_seconds=_FULL_PAUSE_SECONDS,
                )
            await admission.ended.wait()

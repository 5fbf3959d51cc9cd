"""Leader election with a Lease: acquires, renews and releases it.

A leader that loses it stops at once.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

from agentworld.cluster.api_resources import Object, type_fields
from agentworld.cluster.client import Cluster
from agentworld.errors import ClusterError
from agentworld_operator import timestamps
from agentworld_operator.periodic import retry
from agentworld_operator.policy.lease import Lease, LeaseObservation, decide, observe

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


class Times(NamedTuple):
    """Times in seconds. The former holder stops before another replica can acquire the lease."""

    duration: float = 15.0
    """The duration of the lease, after which another replica may acquire it."""
    renewal: float = 10.0
    """The time without a successful renewal after which the holder stops."""
    pause: float = 2.0
    """The time between two attempts."""


class Leadership:
    """One replica's part in the election."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        identity: str,
        *,
        times: Times = Times(),  # noqa: B008 - frozen
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._identity = identity
        self._times = times
        self._clock = clock
        self._observation: LeaseObservation | None = None
        # A thread of its own, because a renewal must not wait for other work. Only one, because a
        # cancelled attempt continues in it.
        self._executor = ThreadPoolExecutor(1, "lease")
        self._is_over = False

    async def acquire(self) -> None:
        """Returns when this replica leads; raises ClusterError if a retry cannot help."""
        pause = self._times.pause
        while not await retry(pause, partial(self._ask, self._try)):
            await asyncio.sleep(pause)
        _log.info("%s leads", self._identity)

    async def keep(self) -> None:
        """Renews the lease; returns when this replica no longer leads."""
        renewal_time = self._clock()
        while (remaining_seconds := self._times.renewal - (self._clock() - renewal_time)) > 0:
            request_time = self._clock()
            try:
                # Not `wait_for`, which may lose a cancellation that arrives with the response.
                async with asyncio.timeout(remaining_seconds):
                    is_leader = await self._ask(self._try)
                if not is_leader:
                    break
                renewal_time = request_time  # not the time of the response, which may be late
            except ClusterError as error:
                _log.warning("%s", error)
            except TimeoutError:
                break
            await asyncio.sleep(self._times.pause)
        _log.warning("%s leads no longer", self._identity)

    async def release(self) -> None:
        """Releases the lease if this replica holds it; it never leads again."""
        try:
            await self._ask(self._release_lease)
        except ClusterError as error:
            _log.warning("%s; the lease runs out by itself", error)

    async def _ask(self, request: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._executor, request)

    def _release_lease(self) -> None:
        self._is_over = True
        lease = self._cluster.get("Lease", self._name)
        if lease and lease["spec"].get("holderIdentity") == self._identity:
            self._cluster.replace(self._build_lease(lease, holder=""))

    def _try(self) -> bool:
        """Whether this replica leads now."""
        return not self._is_over and self._take_or_renew()

    def _take_or_renew(self) -> bool:
        lease = self._cluster.get("Lease", self._name)
        now = self._clock()
        self._observation = observe(self._observation, _read(lease), now)
        decision = decide(self._identity, self._observation, self._times.duration, now)
        if decision == "wait":
            return False
        write = self._cluster.replace if lease else self._cluster.create
        stored_lease = write(self._build_lease(lease, holder=self._identity))
        self._observation = LeaseObservation(_read(stored_lease), self._clock())
        return True

    def _build_lease(self, lease: Object | None, *, holder: str) -> Object:
        now = timestamps.now("microseconds")
        before = lease["spec"] if lease else {}
        same = before.get("holderIdentity") == holder
        turns = before.get("leaseTransitions", 0) + (0 if same or not holder else 1)
        return {
            **type_fields("Lease"),
            "metadata": lease["metadata"] if lease else {"name": self._name},
            "spec": before
            | {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(self._times.duration),
                "acquireTime": before.get("acquireTime", now) if same else now,
                "renewTime": now,
                "leaseTransitions": turns,
            },
        }


def _read(lease: Object | None) -> Lease | None:
    if lease is None:
        return None
    return Lease(lease["spec"].get("holderIdentity") or "", lease["metadata"]["resourceVersion"])

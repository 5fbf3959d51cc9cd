"""Reconciles the resources of one kind: one round for a name, then one status.

A Controller has the queue, and writes the status and its events. The Reconciler of the kind
determines the state, its problems, and when to reconcile again.
"""

from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld.errors import AgentworldError
from agentworld_operator import timestamps
from agentworld_operator.cache import Cache
from agentworld_operator.status import ResourceStatus, write_status
from agentworld_operator.work_queue import WorkQueue

_WORKERS = 8


Status = TypeVar("Status", bound=ResourceStatus)


class Outcome(NamedTuple, Generic[Status]):
    """The result of a round."""

    status: Status | None = None
    """Null if there is nothing to report, because the resource was deleted."""
    problem: AgentworldError | None = None
    """An error that a later round may correct; the status is written anyway."""
    look_again_seconds: float | None = None
    """Seconds until the next round; null if only a change requires one."""


class Reconciler(Protocol[Status]):
    """Reconciles one kind. Its memory can be lost: the next round restores it."""

    kind: str
    status_type: type[Status]

    def affected_names(self, kind: str, resource: Object) -> Iterable[str]:
        """The names to reconcile after an object of any kind was created, changed or deleted."""

    async def reconcile(self, resource: Object, before: Status, now: str) -> Outcome[Status]:
        """Brings a resource to its spec; raises errors that a later round may correct."""

    async def clean_up(self, name: str) -> Outcome[Status]:
        """Deletes what a deleted resource left; raises as `reconcile` does."""


class Controller(Generic[Status]):
    """All resources of one kind in the namespace."""

    def __init__(self, cluster: Cluster, cache: Cache, reconciler: Reconciler[Status]) -> None:
        self._cluster = cluster
        self._cache = cache
        self._reconciler = reconciler
        self.queue = WorkQueue(self._work, workers=_WORKERS)
        """The queue of names, with counts of results."""

    async def run(self) -> None:
        """Works until it is cancelled."""
        await self.queue.run()

    def add(self, names: Iterable[str]) -> None:
        """Queues these names."""
        for name in names:
            self.queue.add(name)

    def on_change(self, kind: str, resource: Object) -> None:
        """Queues the affected names after an object was created, changed or deleted."""
        self.add(self._reconciler.affected_names(kind, resource))

    async def reconcile(self, name: str) -> Outcome[Status]:
        """Reconciles one resource, and writes its events and its status if they changed."""
        kind = self._reconciler.kind
        resource = self._cache.get(kind, name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            return await self._reconciler.clean_up(name)
        before = self._reconciler.status_type.model_validate(resource.get("status") or {})
        now = timestamps.now()
        outcome = await self._reconciler.reconcile(resource, before, now)
        if outcome.status is not None and outcome.status != before:
            change = kind, resource, before, outcome.status, now
            stored_resource = await write_status(self._cluster, *change)
            self._cache.put(kind, stored_resource)
        return outcome

    async def _work(self, name: str) -> float | None:
        outcome = await self.reconcile(name)
        if outcome.problem:
            raise outcome.problem
        return outcome.look_again_seconds

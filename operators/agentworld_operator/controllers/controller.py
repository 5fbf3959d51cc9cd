"""How the resources of one kind come to be as their specs say: a round by name, then one status.

A Controller has the queue and writes the status and its events. A Reconciler of the kind says what
is so, what keeps it from being as it should be, and when to look again.
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
    """What a round came to."""

    status: Status | None = None
    """Null where nothing can be said: the resource is gone."""
    problem: AgentworldError | None = None
    """What a later round may mend; the status is written all the same."""
    look_again_seconds: float | None = None
    """Null where only a change is a reason to look again."""


class Reconciler(Protocol[Status]):
    """One kind. What it remembers can be lost: the next round finds it out again."""

    kind: str
    status_type: type[Status]

    def affected_names(self, kind: str, resource: Object) -> Iterable[str]:
        """Names to reconcile after an object of any kind came, changed or went."""

    async def reconcile(self, resource: Object, before: Status, now: str) -> Outcome[Status]:
        """Brings a resource to what its spec says; raises what a later round may mend."""

    async def clean_up(self, name: str) -> Outcome[Status]:
        """Deletes what a deleted resource left behind; raises as `reconcile` does."""


class Controller(Generic[Status]):
    """All resources of one kind in the namespace."""

    def __init__(self, cluster: Cluster, cache: Cache, reconciler: Reconciler[Status]) -> None:
        self._cluster = cluster
        self._cache = cache
        self._reconciler = reconciler
        self.queue = WorkQueue(self._work, workers=_WORKERS)
        """The resources that wait for a round, and what came of the others."""

    async def run(self) -> None:
        """Works until it is cancelled."""
        await self.queue.run()

    def add(self, names: Iterable[str]) -> None:
        """Has these reconciled soon."""
        for name in names:
            self.queue.add(name)

    def on_change(self, kind: str, resource: Object) -> None:
        """An object of any kind came, changed or went."""
        self.add(self._reconciler.affected_names(kind, resource))

    async def reconcile(self, name: str) -> Outcome[Status]:
        """One round for one resource, with its events and its status where they changed."""
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

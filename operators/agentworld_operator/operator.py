"""The operator at work: watches, a queue, and now and then a look at everything."""

import asyncio
import logging
from contextlib import suppress
from typing import Any

import kopf
from kopf._cogs.structs.references import Insights  # a type of kopf.operator's own arguments
from pydantic import ValidationError

from agentworld.engine.names import short
from agentworld.errors import AgentworldError, ClusterError
from agentworld.records.base import Digest
from agentworld_operator.cluster import Cluster
from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.watches import registry, resource_selector, settings
from agentworld_operator.identities import Identities
from agentworld_operator.controllers.alias import Names
from agentworld_operator.controllers.simulator import Reconciler
from agentworld_operator.resources.names import DIGEST_LABEL
from agentworld_operator.resources.simulator import SimulatorSpec
from agentworld_operator.controllers.schedule import Schedules
from agentworld_operator.cache import OWN, WATCHED, Cache
from agentworld_operator.work_queue import WorkQueue
from agentworld_pipelines.api_server import Object

_log = logging.getLogger(__name__)

_WORKERS = 8
_PAUSE_SECONDS = 1.0


async def check_watched(insights: Insights) -> None:
    """Raises ClusterError where kopf found less than is to be watched: an API server that has just
    started may not tell of all yet, and kopf asks once.
    """
    await insights.ready_resources.wait()
    resources = {(each.group, each.version, each.plural) for each in insights.watched_resources}
    if missing := [kind for kind in WATCHED if resource_selector(kind) not in resources]:
        raise ClusterError(f"the API server does not tell of {', '.join(missing)}; begin anew")


class _Ended(Exception):
    """The process was told to stop."""


class Running:
    """One operator that leads. It ends when it is cancelled, and nothing is undone."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        identities: Identities,
        reconciler: Reconciler,
        episodes: OpenEpisodes,
        names: Names,
        schedules: Schedules,
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._identities = identities
        self._episodes = episodes
        self._queue = WorkQueue(reconciler.reconcile, workers=_WORKERS)
        self._names = names
        self._schedules = schedules

    async def run(self, login: Any, *, look_seconds: float, ask_seconds: float) -> None:
        """Works until it is cancelled; what a watch lost, the next look finds.

        Raises ClusterError where it cannot watch any more.
        """
        await self._look_around()
        insights, failed = Insights(), list[BaseException]()
        try:
            async with asyncio.TaskGroup() as together:
                together.create_task(self._watch(login, insights))
                together.create_task(check_watched(insights))
                together.create_task(self._queue.run())
                together.create_task(self._names.run(look_seconds, ask_seconds))
                together.create_task(self._schedules.run())
                together.create_task(self._look_again(look_seconds))
                together.create_task(self._ask_again(ask_seconds))
        except* _Ended:
            _log.info("told to stop")
        except* ClusterError as errors:
            failed += errors.exceptions
        if failed:
            raise failed[0]

    async def _watch(self, login: Any, insights: Insights) -> None:
        """Returns never; kopf ends by itself when the process is told to end."""
        try:
            await kopf.operator(
                registry=registry(self._cache, self._changed, login),
                settings=settings(),
                insights=insights,
                namespace=self._cluster.namespace,
            )
        except Exception as error:  # an edge: whatever kopf gives up with
            raise ClusterError(
                f"the watches ended ({type(error).__name__}: {error}); begin anew"
            ) from error
        raise _Ended

    def _changed(self, kind: str, resource: Object) -> None:
        """Whom to look at, after an object came, changed or went."""
        metadata = resource["metadata"]
        if kind == "TrainingSchedule":
            self._schedules.changed(metadata["name"])
            return
        if kind in OWN:
            self._names.changed(kind, metadata["name"])
        if kind == "SimulatorAlias":
            return
        if kind != "Simulator":
            engine = (metadata.get("labels") or {}).get(DIGEST_LABEL, "")
        else:
            self._queue.add(metadata["name"])
            engine = self._identities.engine(resource) or ""
            there = self._cache.get(kind, metadata["name"])
            if there is None or there["metadata"]["uid"] != metadata["uid"]:
                self._identities.forget(resource)
        for name in self._identities.names(engine):
            self._queue.add(name)

    def _enqueue_simulators(self, digest: Digest) -> None:
        for name in self._identities.names(short(digest)):
            self._queue.add(name)

    async def _look_around(self) -> None:
        """Before anything is done: who sees a Simulator and not yet its engine, its rivals or its
        episodes would take what runs for missing, or for too much.

        Raises ClusterError for what no other try could mend, as a right that is missing: a process
        that ends is seen, and one that only waits is not.
        """
        while True:
            try:
                await self.look()
                break
            except ClusterError as error:
                if not error.retryable:
                    raise
                _log.warning("%s", error)
            await asyncio.sleep(_PAUSE_SECONDS)
        for simulator in self._cache.all("Simulator"):
            with suppress(ValidationError, AgentworldError):  # its own round tells
                spec = SimulatorSpec.model_validate(simulator["spec"])
                await asyncio.to_thread(self._identities.learn, simulator, spec.identity)
        await self._episodes.ask(self._enqueue_simulators)

    async def _look_again(self, every_seconds: float) -> None:
        while True:
            await asyncio.sleep(every_seconds)
            try:
                await self.look()
            except ClusterError as error:
                _log.warning("%s", error)

    async def look(self) -> None:
        """Asks for everything that is watched, and works on what differs from what was told."""
        for kind in WATCHED:
            selector = "" if kind in OWN else DIGEST_LABEL
            listing = await asyncio.to_thread(self._cluster.all, kind, selector)
            for changed in self._cache.replace(kind, *listing):
                self._changed(kind, changed)

    async def _ask_again(self, every_seconds: float) -> None:
        """Scaling follows the service's numbers; who may go waits for a clock besides."""
        while True:
            await self._episodes.ask(self._enqueue_simulators)
            for simulator in self._cache.all("Simulator"):
                if simulator["spec"].get("serving", {}).get("bounds"):
                    self._queue.add(simulator["metadata"]["name"])
            await asyncio.sleep(every_seconds)

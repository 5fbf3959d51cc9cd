"""The leading operator: watches, a controller for each kind, and periodic work."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import ValidationError

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld.cluster.names import DIGEST_LABEL, short
from agentworld.cluster.records.simulator import SimulatorSpec, SimulatorStatus
from agentworld.errors import AgentworldError, ClusterError
from agentworld.records.base import Digest
from agentworld_operator.cache import OWN, WATCHED, Cache
from agentworld_operator.controllers.alias import AliasReconciler
from agentworld_operator.controllers.controller import Controller, Reconciler
from agentworld_operator.controllers.schedule import ScheduleReconciler
from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.identities import Identities
from agentworld_operator.periodic import every, retry
from agentworld_operator.settings import OperatorSettings
from agentworld_operator.watches import Stopped, Watches
from agentworld_operator.work_queue import WorkQueue

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0


class Reconcilers(NamedTuple):
    """The reconcilers of our kinds."""

    simulators: Reconciler[SimulatorStatus]
    aliases: AliasReconciler
    schedules: ScheduleReconciler


class Operator:
    """Runs until it is cancelled; cancellation undoes nothing."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        identities: Identities,
        episodes: OpenEpisodes,
        reconcilers: Reconcilers,
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._identities = identities
        self._episodes = episodes
        self._alias_reconciler = reconcilers.aliases
        self._schedule_reconciler = reconcilers.schedules
        self._simulators = Controller(cluster, cache, reconcilers.simulators)
        self._aliases = Controller(cluster, cache, reconcilers.aliases)
        self._schedules = Controller(cluster, cache, reconcilers.schedules)

    @property
    def queues(self) -> dict[str, WorkQueue]:
        """The queues by kind."""
        return {
            "Simulator": self._simulators.queue,
            "SimulatorAlias": self._aliases.queue,
            "TrainingSchedule": self._schedules.queue,
        }

    async def run(self, login: Callable[..., Any], settings: OperatorSettings) -> None:
        """Works until it is cancelled; the next list corrects what a watch missed.

        Raises ClusterError if it cannot watch any more.
        """
        await self._prepare()
        watches = Watches(self._cluster.namespace, self._cache, self._on_change, login)
        failures: list[BaseException] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(watches.run())
                tasks.create_task(watches.check())
                tasks.create_task(self._simulators.run())
                tasks.create_task(self._aliases.run())
                tasks.create_task(self._schedules.run())
                tasks.create_task(every(settings.look_seconds, self.list_resources, at_once=False))
                tasks.create_task(every(settings.look_seconds, self._compare_names))
                tasks.create_task(
                    every(settings.ask_seconds, self._ask_for_episodes, at_once=False)
                )
                tasks.create_task(every(settings.mirror_seconds, self._ask_for_recurring_runs))
        except* Stopped:
            _log.info("told to stop")
        except* ClusterError as errors:
            failures += errors.exceptions
        if failures:
            raise failures[0]

    async def _prepare(self) -> None:
        """Fills the cache first: a Simulator without its engine, its rivals or its episodes in the
        cache would look as if its engine was missing or too large.
        """
        await retry(_PAUSE_SECONDS, self.list_resources)
        async with asyncio.TaskGroup() as tasks:
            for simulator in self._cache.all("Simulator"):
                tasks.create_task(self._load_identity(simulator))
        await self._ask_for_episodes()

    async def _load_identity(self, simulator: Object) -> None:
        with suppress(ValidationError, AgentworldError):  # its own round reports that
            spec = SimulatorSpec.model_validate(simulator["spec"])
            await self._identities.load(simulator, spec.identity)

    async def list_resources(self) -> None:
        """Lists all watched objects, and reconciles what differs from the cache."""
        for kind in WATCHED:
            selector = "" if kind in OWN else DIGEST_LABEL
            listing = await asyncio.to_thread(self._cluster.all, kind, selector)
            for resource in self._cache.replace(kind, *listing):
                self._on_change(kind, resource)

    def _on_change(self, kind: str, resource: Object) -> None:
        self._simulators.on_change(kind, resource)
        self._aliases.on_change(kind, resource)
        self._schedules.on_change(kind, resource)

    async def _compare_names(self) -> None:
        self._aliases.add(await self._alias_reconciler.find_names_without_object())

    async def _ask_for_episodes(self) -> None:
        await self._episodes.ask(self._episodes_changed)

    def _episodes_changed(self, digest: Digest) -> None:
        self._simulators.add(self._identities.names(short(digest)))

    async def _ask_for_recurring_runs(self) -> None:
        self._schedules.add(await self._schedule_reconciler.ask_server())

"""Many simulators in one process, each connected when it is asked for first."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from agentworld.engine.base import Engine
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.records.base import Digest
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.service import Accelerators, SimulatorService
from agentworld.serving.simulators.base import SimulatorRequest
from agentworld.serving.telemetry.metrics import States

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class ConnectedSimulator(NamedTuple):
    """A simulator, and what answers as it was pinned."""

    manifest: SimulatorManifest
    engine: Engine
    states: States = dict
    """Whether each replica of the engine is asked."""
    accelerators: Accelerators = tuple


class OnDemand:
    """Serves whatever `find` finds; both callables raise a typed error for what is not there.

    Who asks while a simulator is being connected waits for the same connecting. A failure is told
    to all of them and not remembered: who asks next has it tried again.
    """

    only: Digest | None = None

    def __init__(
        self,
        episode_store: EpisodeStore,
        find: Callable[[Digest], Awaitable[ConnectedSimulator]],
        resolve: Callable[[SimulatorRequest], Awaitable[Digest]],
    ) -> None:
        """`resolve` knows what an alias means now, and who may open runs with what it means."""
        self.connected: dict[Digest, SimulatorService] = {}
        self._episode_store = episode_store
        self._find = find
        self._resolve = resolve
        self._connecting: dict[Digest, asyncio.Task[SimulatorService]] = {}

    def check(self, simulator: Digest) -> None:
        """Runs of all simulators are known here."""

    async def find(self, simulator: Digest) -> SimulatorService:
        """Connects it, once for all who ask."""
        if service := self.connected.get(simulator):
            return service
        connecting = self._connecting.get(simulator)
        if connecting is None:
            connecting = asyncio.create_task(self._connect(simulator))
            self._connecting[simulator] = connecting
            connecting.add_done_callback(lambda done: self._forget(simulator, done))
        return await asyncio.shield(connecting)  # others wait for it, whoever gives up

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """Raises InputError where nothing is named."""
        name = request.simulator
        if not name:
            raise InputError(
                "this service has many simulators; name the run's as `simulator`, by an alias or"
                " by its digest"
            )
        if request.is_by_digest and not _DIGEST.fullmatch(name):
            raise NotFound(f"there is no simulator {name[:80]!r}; give the digest of one")
        return await self._resolve(request)

    async def close(self) -> None:
        """Lets go of the engines of all."""
        connecting = [*self._connecting.values()]
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        await asyncio.gather(*(service.close() for service in self.connected.values()))

    async def _connect(self, simulator: Digest) -> SimulatorService:
        connection = await self._find(simulator)
        try:
            service = self._service(simulator, connection)
        except BaseException:
            await connection.engine.close()
            raise
        self.connected[simulator] = service
        return service

    def _service(self, simulator: Digest, connection: ConnectedSimulator) -> SimulatorService:
        if connection.manifest.digest != simulator:
            raise EvidenceError(
                f"what was found as simulator {simulator} is {connection.manifest.digest}; restore"
                " its manifest"
            )
        return SimulatorService(
            connection.manifest,
            connection.engine,
            self._episode_store,
            states=connection.states,
            accelerators=connection.accelerators,
        )

    def _forget(self, simulator: Digest, done: asyncio.Task[SimulatorService]) -> None:
        del self._connecting[simulator]
        if not done.cancelled():
            done.exception()  # told to who waits, if anybody still does

"""The connected simulators of a process; each is connected on first use."""

import asyncio
import re

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.records.base import Digest
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.service import SimulatorService, wrong_simulator
from agentworld.serving.simulators.base import Catalog, ConnectedSimulator, SimulatorRequest

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class Simulators:
    """Serves the simulators of a catalog.

    Concurrent requests share one attempt to connect. A failure is raised in all of them and not
    cached: the next request tries again.
    """

    def __init__(self, episode_store: EpisodeStore, catalog: Catalog) -> None:
        """Raises InputError if this code is not what the only simulator pins."""
        self.single: Digest | None = None
        """The only simulator, if there is exactly one for the life of the process."""
        self.connected: dict[Digest, SimulatorService] = {}
        """The connected simulators."""
        self._episode_store = episode_store
        self._catalog = catalog
        self._connecting: dict[Digest, asyncio.Task[SimulatorService]] = {}
        if catalog.single:
            self.single = catalog.single.manifest.digest
            self.connected[self.single] = self._service(self.single, catalog.single)

    def check(self, simulator: Digest) -> None:
        """Raises Conflict for a simulator whose runs this process neither serves nor reads."""
        if self.single and simulator != self.single:
            raise wrong_simulator(simulator, self.single)

    async def find(self, simulator: Digest) -> SimulatorService:
        """The service of a simulator; connects it once for concurrent requests."""
        if service := self.connected.get(simulator):
            return service
        connecting = self._connecting.get(simulator)
        if connecting is None:
            connecting = asyncio.create_task(self._connect(simulator))
            self._connecting[simulator] = connecting
            connecting.add_done_callback(lambda done: self._forget(simulator, done))
        return await asyncio.shield(connecting)  # a cancelled request does not cancel it for others

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """The simulator of a new run: the only one if none is named.

        Raises InputError if it must be named, and AccessError if the tenant may not use it.
        """
        name = request.simulator
        if not name:
            if self.single:
                return self.single
            raise InputError(
                "this service has many simulators; name the run's as `simulator`, by an alias or"
                " by its digest"
            )
        if request.is_by_digest and not _DIGEST.fullmatch(name):
            raise NotFound(
                f"there is no simulator {name[:80]!r}; give the digest of one that `agentworld"
                " simulator list` prints"
            )
        return await self._catalog.resolve(request)

    async def close(self) -> None:
        """Closes all engines."""
        connecting = [*self._connecting.values()]
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        await asyncio.gather(*(service.close() for service in self.connected.values()))

    async def _connect(self, simulator: Digest) -> SimulatorService:
        connection = await self._catalog.find(simulator)
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
            done.exception()  # raised in the requests that wait for it

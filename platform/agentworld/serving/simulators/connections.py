"""The simulators of a process, each connected when it is asked for first."""

import asyncio
import re

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.records.base import Digest
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.service import SimulatorService, wrong_simulator
from agentworld.serving.simulators.base import Catalog, ConnectedSimulator, SimulatorRequest

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class Simulators:
    """Serves what a catalog has.

    Who asks while a simulator is being connected waits for the same connecting. A failure is told
    to all of them and not remembered: who asks next has it tried again.
    """

    def __init__(self, episode_store: EpisodeStore, catalog: Catalog) -> None:
        """Raises InputError where this code is not what the only simulator pins."""
        self.single: Digest | None = None
        """The one that there is, where there is exactly one for good."""
        self.connected: dict[Digest, SimulatorService] = {}
        """Those that can answer now."""
        self._episode_store = episode_store
        self._catalog = catalog
        self._connecting: dict[Digest, asyncio.Task[SimulatorService]] = {}
        if catalog.single:
            self.single = catalog.single.manifest.digest
            self.connected[self.single] = self._service(self.single, catalog.single)

    def check(self, simulator: Digest) -> None:
        """Raises Conflict for one whose runs are nothing to this process, not even to be read."""
        if self.single and simulator != self.single:
            raise wrong_simulator(simulator, self.single)

    async def find(self, simulator: Digest) -> SimulatorService:
        """What answers for a simulator; connects it, once for all who ask."""
        if service := self.connected.get(simulator):
            return service
        connecting = self._connecting.get(simulator)
        if connecting is None:
            connecting = asyncio.create_task(self._connect(simulator))
            self._connecting[simulator] = connecting
            connecting.add_done_callback(lambda done: self._forget(simulator, done))
        return await asyncio.shield(connecting)  # others wait for it, whoever gives up

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """The simulator that a run is opened with: the only one where it names none.

        Raises InputError where it has to name one, and AccessError where the tenant may not.
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
        """Lets go of the engines of all."""
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
            done.exception()  # told to who waits, if anybody still does

"""The parties of a campaign: restarted processes, networks, clients."""

from functools import partial

import httpx

from agentworld.engine.process import free_port
from campaigns.harness.journal import Journal, read
from campaigns.harness.processes import Command, RestartedProgram, until
from campaigns.harness.proxy import LOOPBACK, Proxy
from campaigns.service.client import Client
from campaigns.service.place import VERSIONS, Place
from campaigns.service.rough import RoughClient
from campaigns.service.socket_client import SocketClient
from campaigns.service.trainer import Trainer
from machines.program import Program

LAYERS = {"engine", "network", "process", "database"}
"""The prefixes of the kinds of faults."""
_NETWORK_RATE = 0.02
_ENGINE_RATE = 0.08
_ENGINES = ("first-0", "first-1", "second-0")
_TRAINERS = {"first-0": 8, "first-1": 8, "second-0": 4}
"""Trainers with their numbers of concurrent episodes; like engines, they are named after their
versions.
"""
_NUM_OTHERS = 4


class Crew:
    """Two replicas of the service, engines of two versions, networks between all, and clients."""

    def __init__(self, place: Place, seed: str) -> None:
        self.place = place
        self.over = False
        """True after the last fault."""
        self.faults = Journal(place.folder / "faults.jsonl")
        self._seed = seed
        self._engine_rate = _ENGINE_RATE
        self.engines = [self._engine(name, free_port()) for name in _ENGINES]
        self.to_engine = {
            engine.program.name: self._proxy(engine.program.name, free_port(), [engine.port])
            for engine in self.engines
        }
        self.services = [self._service(f"service-{number}", free_port()) for number in range(2)]
        ports = [service.port for service in self.services]
        self._fronts = [
            self._proxy(name, free_port(), servers)
            for name, servers in [("front", ports), ("front-0", ports[:1]), ("front-1", ports[1:])]
        ]
        self.networks = [*self._fronts, *self.to_engine.values()]
        self.trainers = [
            Trainer(place, name, self._fronts[0].url, num_seats, seed)
            for name, num_seats in _TRAINERS.items()
        ]
        self.clients: list[Client] = [*self.trainers, *self._others()]

    @property
    def busy(self) -> bool:
        """Whether clients have active requests."""
        return any(front.in_use for front in self._fronts)

    def were_hit(self, num_faults: int) -> bool:
        """Whether there were that many faults, and some in each layer."""
        kinds = [line["kind"] for line in read(self.place.folder / "faults.jsonl")]
        return len(kinds) >= num_faults and {kind.partition(":")[0] for kind in kinds} == LAYERS

    @property
    def num_steps(self) -> int:
        """The steps of all clients."""
        return sum(client.num_steps for client in self.clients)

    def took(self, num_steps: int) -> bool:
        """Whether clients took that many steps."""
        return self.num_steps >= num_steps

    def is_used(self, program: RestartedProgram) -> bool:
        """Whether the program has an active request."""
        network = self.to_engine.get(program.program.name)
        return network.in_use if network else self.busy

    def count(self, kind: str, target: str, *, hits: bool | None = None) -> None:
        """Records a fault, if it hits a client; by default, any with an active request."""
        if self.busy if hits is None else hits:
            self.faults.write(kind=kind, target=target)

    async def ready(self) -> None:
        """Returns when every service responds."""
        async with httpx.AsyncClient(trust_env=False, timeout=5.0) as http:
            for service in self.services:
                problem = f"{service.program.name} does not come up"
                await until(partial(_answers, http, service.port), problem)

    async def calm(self) -> None:
        """Ends all faults; each version is then served by one replica."""
        for network in self.networks:
            network.rate = 0.0
        self._engine_rate = 0.0
        for engine in self.engines:
            engine.version = engine.program.name.partition("-")[0]
            engine.program.kill()
        for service, version in zip(self.services, VERSIONS, strict=True):
            if service.version != version:
                service.version = version
                assert await service.program.end(), f"{service.program.name} does not end"

    async def end(self) -> None:
        """Ends all processes."""
        for service in (*self.services, *self.engines):
            await service.program.end()

    def _engine(self, name: str, port: int) -> RestartedProgram:
        def command(program: RestartedProgram) -> Command:
            seed = f"{self._seed} {program.program.lives}"
            return self.place.engine(name, program.version, program.port, self._engine_rate, seed)

        return RestartedProgram(self._program(name), port, name.partition("-")[0], command)

    def _service(self, name: str, port: int) -> RestartedProgram:
        def command(program: RestartedProgram) -> Command:
            engines = [
                proxy.port
                for engine, proxy in self.to_engine.items()
                if engine.startswith(program.version)
            ]
            return self.place.service(program.version, program.port, engines)

        return RestartedProgram(self._program(name), port, VERSIONS[0], command)

    def _program(self, name: str) -> Program:
        return Program(name, self.place.folder / f"{name}.log")

    def _proxy(self, name: str, port: int, servers: list[int]) -> Proxy:
        return Proxy(name, port, servers, _NETWORK_RATE, self._seed, self.faults)

    def _others(self) -> list[Client]:
        """The clients that break rules, and those of another protocol."""
        front, *urls = (front.url for front in self._fronts)
        journal, numbers = Journal(self.place.folder / "wire.jsonl"), range(_NUM_OTHERS)
        return [
            *(RoughClient(f"rough-{number}", urls, self._seed, journal) for number in numbers),
            *(SocketClient(f"socket-{number}", front, self._seed, journal) for number in numbers),
        ]


async def _answers(http: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await http.get(f"http://{LOOPBACK}:{port}/health")).is_success
    except httpx.HTTPError:
        return False

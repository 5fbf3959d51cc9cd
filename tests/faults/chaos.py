"""What is done to processes, networks and trainers, in an order that one seed decides.

Faults of single requests are drawn where the requests are: in the engines and in the networks.
"""

import asyncio
import random
import signal
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial

from faults.crew import Crew
from faults.databases import Database, Fault
from faults.place import VERSIONS
from faults.program import Kept
from faults.proxy import LOOPBACK

_LONGEST_SECONDS = 60.0
_STEPS_BETWEEN = 10
"""On a slow machine too, a fault hits a service that does its work."""


async def rage(crew: Crew, database: Database, seed: str) -> None:
    """Several strands of faults at once, until the crew says that it is over."""
    strands: dict[str, tuple[float, Sequence[Fault]]] = {
        "services": (0.6, (_kill_one, _kill_both, _end_service, _stop_service, _swap_service)),
        "engines": (0.5, (_kill_engine, _stop_engine, _swap_engine)),
        "networks": (0.8, (_shut_network,)),
        "databases": (0.8, (*database.faults, _take_store)),
        "trainers": (2.0, (_kill_trainer,)),
    }
    async with asyncio.TaskGroup() as group:
        for name, (pause, faults) in strands.items():
            chance = random.Random(f"{name} {seed}")
            group.create_task(_strand(crew, chance, pause, faults))


async def _strand(crew: Crew, chance: random.Random, pause: float, faults: Sequence[Fault]) -> None:
    while not crew.over:
        enough = crew.num_steps + _STEPS_BETWEEN
        await asyncio.sleep(pause * chance.uniform(0.5, 1.5))
        await _until(partial(crew.took, enough), "no step succeeds any more")
        await chance.choice(faults)(crew, chance)


async def _kill_one(crew: Crew, chance: random.Random) -> None:
    await _kill(crew, [chance.choice(crew.services)], chance.uniform(0, 0.5))


async def _kill_both(crew: Crew, chance: random.Random) -> None:
    await _kill(crew, crew.services, chance.uniform(0, 0.5))


async def _kill(crew: Crew, services: Sequence[Kept], rest: float) -> None:
    for service in services:
        service.rest(rest)
        if service.program.kill():
            crew.count("process", "service killed", service.program.name)
    for service in services:
        await _back(service)


async def _end_service(crew: Crew, chance: random.Random) -> None:
    """It is asked to end, and does so within its time."""
    service = chance.choice(crew.services)
    if service.program.pid is not None:
        crew.count("process", "service ended", service.program.name)
        assert await service.program.end(), f"{service.program.name} does not end"
    await _back(service)


async def _stop_service(crew: Crew, chance: random.Random) -> None:
    service = chance.choice(crew.services)
    if service.program.send(signal.SIGSTOP):
        crew.count("process", "service stopped", service.program.name)
    await asyncio.sleep(chance.uniform(0.2, 1.5))
    service.program.send(signal.SIGCONT)


async def _swap_service(crew: Crew, chance: random.Random) -> None:
    """Another version is deployed at the same address, until it is taken back."""
    service = chance.choice(crew.services)
    service.version = _other(service.version)
    if service.program.kill():
        crew.count("process", "service swapped", service.program.name)
    await _back(service)


async def _kill_engine(crew: Crew, chance: random.Random) -> None:
    engine = chance.choice(crew.engines)
    engine.rest(chance.uniform(0.1, 1.0))
    _kill_now(crew, engine, "engine killed")
    await _back(engine)


async def _stop_engine(crew: Crew, chance: random.Random) -> None:
    engine = chance.choice(crew.engines)
    hits = crew.to_engine[engine.program.name].in_use
    if engine.program.send(signal.SIGSTOP):
        crew.count("process", "engine stopped", engine.program.name, hits=hits)
    await asyncio.sleep(chance.uniform(0.2, 1.5))
    engine.program.send(signal.SIGCONT)


async def _swap_engine(crew: Crew, chance: random.Random) -> None:
    """An engine of another version answers at the same address for a while."""
    engine = chance.choice(crew.engines)
    for _ in range(2):
        engine.version = _other(engine.version)
        _kill_now(crew, engine, "engine swapped")
        await _back(engine)
        await asyncio.sleep(chance.uniform(0.3, 1.0))


def _kill_now(crew: Crew, engine: Kept, kind: str) -> None:
    hits = crew.to_engine[engine.program.name].in_use
    if engine.program.kill():
        crew.count("process", kind, engine.program.name, hits=hits)


def _other(version: str) -> str:
    (other,) = set(VERSIONS) - {version}
    return other


async def _shut_network(crew: Crew, chance: random.Random) -> None:
    network = chance.choice(crew.networks)
    crew.count("network", "shut", network.name, hits=network.in_use)
    await network.shut()
    await asyncio.sleep(chance.uniform(0.1, 0.8))
    await network.open()


async def _take_store(crew: Crew, chance: random.Random) -> None:
    """The store of long texts, or that of signed logs, is not there for a while."""
    store = crew.place.folder / chance.choice(("objects", "checkpoints"))
    away = store.with_suffix(".away")
    if not store.exists():
        return  # nobody needed it so far
    store.rename(away)
    store.touch()
    crew.count("database", "store away", store.name)
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    store.unlink()
    away.rename(store)


async def _kill_trainer(crew: Crew, chance: random.Random) -> None:
    trainer = chance.choice(crew.trainers)
    if trainer.die():
        crew.count("process", "trainer killed", trainer.name)


async def _back(kept: Kept) -> None:
    """Returns when it listens again."""
    await _until(lambda: _listens(kept.port), f"{kept.program.name} does not come back")


async def _until(happened: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not happened():
        assert time.monotonic() < deadline, otherwise
        await asyncio.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0

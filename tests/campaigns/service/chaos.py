"""Faults of processes, networks and trainers, in an order from a seed.

Faults of single requests are drawn in the engines and in the networks.
"""

import asyncio
import random
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from campaigns.harness.processes import RestartedProgram, until
from campaigns.harness.proxy import LOOPBACK
from campaigns.harness.schedule import shuffled
from campaigns.service.crew import Crew
from campaigns.service.place import VERSIONS

Fault = Callable[[Crew, random.Random], Awaitable[None]]
_STEPS_BETWEEN = 10
"""Ensures that a fault hits a working service, also on a slow machine."""


async def rage(crew: Crew, database: Sequence[Fault], seed: str) -> None:
    """Runs several strands of faults concurrently, until the crew ends."""
    async with asyncio.TaskGroup() as group:
        for name, (pause, faults) in _STRANDS.items():
            all_faults = (*faults, *database) if name == "databases" else faults
            group.create_task(_strand(crew, pause, all_faults, f"{name} {seed}"))


async def _strand(crew: Crew, pause: float, faults: Sequence[Fault], seed: str) -> None:
    chance, order = random.Random(seed), shuffled(dict.fromkeys(faults, 1), seed)
    while not crew.over:
        target_steps = crew.num_steps + _STEPS_BETWEEN
        await asyncio.sleep(pause * chance.uniform(0.5, 1.5))
        await until(partial(crew.took, target_steps), "no step succeeds any more")
        await next(order)(crew, chance)


async def _kill_one(crew: Crew, chance: random.Random) -> None:
    await _kill(crew, [chance.choice(crew.services)], chance.uniform(0, 0.5))


async def _kill_both(crew: Crew, chance: random.Random) -> None:
    await _kill(crew, crew.services, chance.uniform(0, 0.5))


async def _swap_service(crew: Crew, chance: random.Random) -> None:
    """Deploys another version at the same address, for a while."""
    service = chance.choice(crew.services)
    service.version = _other(service.version)
    await _kill(crew, [service], 0.0, "service swapped")


async def _kill(
    crew: Crew, services: Sequence[RestartedProgram], rest: float, kind: str = "service killed"
) -> None:
    for service in services:
        service.rest(rest)
        if service.program.kill():
            crew.count(f"process: {kind}", service.program.name)
    for service in services:
        await _back(service)


async def _end_service(crew: Crew, chance: random.Random) -> None:
    """Terminates a service, which must end in time."""
    service = chance.choice(crew.services)
    if service.program.pid is not None:
        crew.count("process: service ended", service.program.name)
        assert await service.program.end(), f"{service.program.name} does not end"
    await _back(service)


async def _stop_service(crew: Crew, chance: random.Random) -> None:
    await _stop(crew, chance.choice(crew.services), "service stopped", chance)


async def _stop_engine(crew: Crew, chance: random.Random) -> None:
    await _stop(crew, chance.choice(crew.engines), "engine stopped", chance)


async def _stop(crew: Crew, program: RestartedProgram, kind: str, chance: random.Random) -> None:
    is_hit = crew.is_used(program)
    if program.program.send(signal.SIGSTOP):
        crew.count(f"process: {kind}", program.program.name, hits=is_hit)
    await asyncio.sleep(chance.uniform(0.2, 1.5))
    program.program.send(signal.SIGCONT)


async def _kill_engine(crew: Crew, chance: random.Random) -> None:
    engine = chance.choice(crew.engines)
    engine.rest(chance.uniform(0.1, 1.0))
    await _end_engine(crew, engine, "engine killed")


async def _swap_engine(crew: Crew, chance: random.Random) -> None:
    """An engine of another version responds at the same address for a while."""
    engine = chance.choice(crew.engines)
    for _ in range(2):
        engine.version = _other(engine.version)
        await _end_engine(crew, engine, "engine swapped")
        await asyncio.sleep(chance.uniform(0.3, 1.0))


async def _end_engine(crew: Crew, engine: RestartedProgram, kind: str) -> None:
    is_hit = crew.is_used(engine)
    if engine.program.kill():
        crew.count(f"process: {kind}", engine.program.name, hits=is_hit)
    await _back(engine)


def _other(version: str) -> str:
    (other,) = set(VERSIONS) - {version}
    return other


async def _shut_network(crew: Crew, chance: random.Random) -> None:
    network = chance.choice(crew.networks)
    crew.count("network: shut", network.name, hits=network.in_use)
    await network.shut()
    await asyncio.sleep(chance.uniform(0.1, 0.8))
    await network.open()


async def _take_store(crew: Crew, chance: random.Random) -> None:
    """Removes the store of long texts, or that of signed logs, for a while."""
    store = crew.place.folder / chance.choice(("objects", "mirror"))
    moved_store = store.with_suffix(".away")
    if not store.exists():
        return  # not needed so far
    store.rename(moved_store)
    store.touch()
    crew.count("database: store away", store.name)
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    store.unlink()
    moved_store.rename(store)


async def _kill_trainer(crew: Crew, chance: random.Random) -> None:
    trainer = chance.choice(crew.trainers)
    if trainer.die():
        crew.count("process: trainer killed", trainer.name)


async def _back(program: RestartedProgram) -> None:
    """Waits until the program listens again."""

    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, program.port)) == 0

    await until(is_listening, f"{program.program.name} does not come back")


_STRANDS: dict[str, tuple[float, Sequence[Fault]]] = {
    "services": (0.6, (_kill_one, _kill_both, _end_service, _stop_service, _swap_service)),
    "engines": (0.5, (_kill_engine, _stop_engine, _swap_engine)),
    "networks": (0.8, (_shut_network,)),
    "databases": (0.8, (_take_store,)),
    "trainers": (2.0, (_kill_trainer,)),
}
"""Seconds between two faults of a strand; the kind of database adds its own."""

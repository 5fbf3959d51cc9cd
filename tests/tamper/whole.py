"""The campaign over both databases and MLflow, in as many processes as the machine has cores."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tamper.campaign import Share, of_honest, of_ledger, of_registry
from tamper.story import build
from tamper.world import World

_PARTS = 4
"""Of each ledger's mutations, so that no core waits long for another one."""
_SHARE_OF_REGISTRY = 0.1


class Report(Share):
    """One campaign: all of it, and the same numbers of each part."""

    by_database: dict[str, Share]
    """MLflow's is SQLite, and the ledger beside it is nobody's aim."""
    seed: str
    seconds: float


def whole(folder: Path, postgresql: str, num_mutations: int, seed: str) -> Report:
    """So many mutations over SQLite, as many over PostgreSQL, and a tenth of that of MLflow.

    `postgresql` is the address of an empty database, whose user may make others.
    """
    begun = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        worlds = {
            "sqlite": pool.submit(build, folder / "sqlite"),
            "postgresql": pool.submit(build, folder / "postgresql", postgresql),
        }
        aside = pool.submit(
            of_registry, folder / "mlflow", int(num_mutations * _SHARE_OF_REGISTRY), seed
        )
        parts = {
            name: [pool.submit(part) for part in _parts(world.result(), num_mutations, seed)]
            for name, world in worlds.items()
        }
        shares = {name: _sum(found) for name, found in {**parts, "mlflow": [aside]}.items()}
    told = Share.sum(shares.values()).model_dump()
    seconds = round(time.monotonic() - begun, 1)
    return Report(**told, by_database=shares, seed=seed, seconds=seconds)


def _parts(world: World, num_mutations: int, seed: str) -> Iterator[Callable[[], Share]]:
    yield partial(_aside, of_honest, world, "honest")
    for part in range(_PARTS):
        own = (num_mutations * (part + 1)) // _PARTS - (num_mutations * part) // _PARTS
        work = partial(of_ledger, num_mutations=own, seed=f"{seed} {part}")
        yield partial(_aside, work, world, f"part{part}")


def _aside(work: Callable[[World], Share], world: World, name: str) -> Share:
    """On a copy of its own."""
    with world.copied(world.folder.with_name(f"{world.folder.name}-{name}"), name) as copy:
        return work(copy)


def _sum(parts: list[Future[Share]]) -> Share:
    return Share.sum(part.result() for part in parts)

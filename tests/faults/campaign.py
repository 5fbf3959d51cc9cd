"""One campaign: faults over a service at work until there were enough, then quiet, then the books.

What is left is a folder with the journals of all parties and a ledger, which the checker reads.
"""

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import make_url

import postgres
from agentworld.audit.verify import verify_run
from agentworld.errors import StoreError
from faults.chaos import rage
from faults.crew import Crew
from faults.databases import Database, Postgres, Sqlite
from faults.place import VERSIONS, Place
from faults.proxy import Proxy
from faults.report import Report
from ports import free_ports

_DATABASE_RATE = 0.002
_QUIET_SECONDS = 60.0
_HOUSEKEEPING_SECONDS = 1.0
_IDLE_SECONDS = 2.0


def over_sqlite(folder: Path, num_faults: int, seed: str) -> Report:
    """A campaign over a ledger in a file."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    crew = Crew(Place.create(folder, url, url), seed)
    return _judged(crew, Sqlite(folder / "ledger.db"), num_faults, seed)


def over_postgres(folder: Path, num_faults: int, seed: str) -> Report:
    """A campaign over a ledger in a server, which is behind a network of its own."""
    (port,) = free_ports(1)
    with postgres.running() as server, server.database() as url:
        through = make_url(url).set(port=port).render_as_string(hide_password=False)
        crew = Crew(Place.create(folder, url, through), seed)
        crew.networks.append(
            Proxy("database", port, [server.port], _DATABASE_RATE, seed, crew.faults)
        )
        return _judged(crew, Postgres(url.replace("+psycopg", "")), num_faults, seed)


def _judged(crew: Crew, database: Database, num_faults: int, seed: str) -> Report:
    began, place = time.monotonic(), crew.place
    asyncio.run(_wage(crew, database, num_faults, seed))
    asyncio.run(_close_books(place))
    seconds = time.monotonic() - began
    return Report.of(place.folder, place.ledger_url, _accused(place), seconds)


async def _wage(crew: Crew, database: Database, num_faults: int, seed: str) -> None:
    """Returns when nothing runs any more."""
    for network in crew.networks:
        await network.open()
    keeping = asyncio.create_task(crew.keep())
    try:
        await crew.ready()
        async with asyncio.TaskGroup() as group:
            playing = [group.create_task(client.play()) for client in crew.clients]
            raging = group.create_task(rage(crew, database, seed))
            housekeeping = group.create_task(_keep_house(crew.place))
            await _enough(crew, num_faults)
            await raging
            housekeeping.cancel()
            await crew.calm()
            await crew.ready()
            await _finish(crew, playing)
    finally:
        keeping.cancel()
        await crew.end()
        for network in crew.networks:
            await network.shut()


async def _enough(crew: Crew, num_faults: int) -> None:
    found = 0
    with (crew.place.folder / "faults.jsonl").open("rb") as lines:
        while found < num_faults:
            found += sum(1 for line in lines if line.strip())
            await asyncio.sleep(0.2)
    crew.over = True


async def _finish(crew: Crew, playing: list[asyncio.Task[None]]) -> None:
    """Everybody comes to an end once nothing fails any more.

    Every trainer dies once more: who comes after it asks again for all that it was answered.
    """
    for client in crew.clients:
        client.end()
    _, late = await asyncio.wait(playing, timeout=_QUIET_SECONDS)
    assert not late, f"{len(late)} clients do not come to an end"


async def _close_books(place: Place) -> None:
    """Ends what was left open, as time would, and signs all logs."""
    for version in VERSIONS:
        with place.housekeeper(version) as housekeeper:
            await housekeeper.work(0.0)
            await housekeeper.keeper.close()


async def _keep_house(place: Place) -> None:
    """A further replica that answers nobody: it ends idle episodes and signs, and does so often."""
    with place.housekeeper(VERSIONS[0]) as housekeeper:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            with suppress(StoreError):
                await housekeeper.work(_IDLE_SECONDS)


def _accused(place: Place) -> list[str]:
    """What our own audit finds wrong: nothing, or it accuses an honest service."""
    with closing(place.ledger()) as ledger:
        verified = [verify_run(run.id, ledger, place.evidence()) for run in ledger.runs()]
    return [f"run {each.run}: {problem}" for each in verified for problem in each.problems]

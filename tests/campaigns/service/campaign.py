"""One campaign: faults for a working service, then a quiet period, then the judgement.

It leaves a folder with the journals of all parties and a ledger, which the checker reads.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from sqlalchemy import make_url

from agentworld.audit.checks.run import verify_run
from agentworld.engine.process import free_port
from agentworld.errors import StoreError
from campaigns.harness.finding import Finding, mistakes
from campaigns.harness.journal import read
from campaigns.harness.processes import keep_running, until
from campaigns.harness.proxy import Proxy
from campaigns.harness.report import FaultReport
from campaigns.service.chaos import rage
from campaigns.service.checker import PROMISES, check
from campaigns.service.crew import Crew
from campaigns.service.databases import Postgres, Sqlite
from campaigns.service.place import VERSIONS, Place
from machines import postgres
from waiting import DEADLINE

_SHARE_OF_POSTGRES = 0.4
_DATABASE_RATE = 0.002
_START_SECONDS = 300.0
_FAULT_SECONDS = 10.0
"""The longest duration of a fault, also on a busy machine."""
_HOUSEKEEPING_SECONDS = 1.0
_IDLE_SECONDS = 2.0
_OTHER_PROMISES = {
    "accused": "a problem that our own audit reports of an honest ledger",
    "mistaken": "a traceback in the log of a service",
}


class ServiceReport(FaultReport):
    """The report of one campaign over a service."""

    answered_steps: int
    """Including retried ones."""
    steps: int
    """Steps in the ledger."""
    episodes: int
    runs: int
    said: int
    """Texts of engines."""
    unanswered: int
    """Clients' requests that a connection lost."""
    refusals: dict[str, int]
    """Responses with typed errors."""


def run(folder: Path, num_faults: int, seed: str) -> ServiceReport:
    """Runs over both kinds of ledger."""
    num_postgres = int(num_faults * _SHARE_OF_POSTGRES)
    first = over_sqlite(folder / "sqlite", num_faults - num_postgres, seed)
    return first.plus(over_postgres(folder / "postgres", num_postgres, seed))


def over_sqlite(folder: Path, num_faults: int, seed: str) -> ServiceReport:
    """A campaign over a ledger in a file."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    crew = Crew(Place.create(folder, url, url), seed)
    return _judged(crew, Sqlite(folder / "ledger.db"), num_faults, seed)


def over_postgres(folder: Path, num_faults: int, seed: str) -> ServiceReport:
    """A campaign over a ledger in a server, which is behind its own network."""
    port = free_port()
    with postgres.running() as server, server.database() as url:
        proxied_url = make_url(url).set(port=port).render_as_string(hide_password=False)
        crew = Crew(Place.create(folder, url, proxied_url), seed)
        crew.networks.append(
            Proxy("database", port, [server.port], _DATABASE_RATE, seed, crew.faults)
        )
        return _judged(crew, Postgres(url.replace("+psycopg", "")), num_faults, seed)


def _judged(crew: Crew, database: Sqlite | Postgres, num_faults: int, seed: str) -> ServiceReport:
    start, place, folder = time.monotonic(), crew.place, crew.place.folder
    asyncio.run(_wage(crew, database, num_faults, seed))
    asyncio.run(_close_books(place))
    verdict = check(folder, place.ledger_url)
    logs = sorted(folder.glob("service-*.log"))
    books, client_records = verdict.books, verdict.responses
    return ServiceReport.of(
        folder,
        [*verdict.findings, *_accused(place), *mistakes(logs)],
        PROMISES | _OTHER_PROMISES,
        seed=seed,
        seconds=round(time.monotonic() - start, 1),
        answered_steps=len(client_records.answers),
        steps=sum(len(episode.steps) for episode in books.episodes.values()),
        episodes=len(books.episodes),
        runs=len(books.runs),
        said=verdict.num_said,
        unanswered=client_records.lost,
        refusals=client_records.refusals,
    )


async def _wage(crew: Crew, database: Sqlite | Postgres, num_faults: int, seed: str) -> None:
    """Returns when all processes have ended."""
    for network in crew.networks:
        await network.open()
    keeper = asyncio.create_task(keep_running((*crew.engines, *crew.services)))
    try:
        await crew.ready()
        async with asyncio.TaskGroup() as group:
            play_tasks = [group.create_task(client.play()) for client in crew.clients]
            rage_task = group.create_task(rage(crew, database.faults, seed))
            housekeeping = group.create_task(_keep_house(crew.place))
            max_seconds = _START_SECONDS + num_faults * _FAULT_SECONDS
            await until(partial(crew.were_hit, num_faults), "too few faults", max_seconds)
            crew.over = True
            await rage_task
            housekeeping.cancel()
            await crew.calm()
            await crew.ready()
            await _finish(crew, play_tasks)
    finally:
        keeper.cancel()
        await crew.end()
        for network in crew.networks:
            await network.shut()


async def _finish(crew: Crew, play_tasks: list[asyncio.Task[None]]) -> None:
    """Lets all clients finish without faults.

    Every trainer dies once more: its successor repeats all requests.
    """
    for client in crew.clients:
        client.end()
    _, pending = await asyncio.wait(play_tasks, timeout=DEADLINE)
    names = {
        client.name
        for client, task in zip(crew.clients, play_tasks, strict=True)
        if task in pending
    }
    last_answers = {name: _last_answers(crew.place, name) for name in sorted(names)}
    assert not pending, (
        f"{len(pending)} clients do not come to an end; what each got last: {last_answers}"
    )


def _last_answers(place: Place, client: str) -> list[str]:
    """A client's last requests with their times, and the response, or the loss of the
    connection.
    """
    lines = [line for line in read(place.folder / "wire.jsonl") if line.get("client") == client]
    return [str(line)[:500] for line in lines[-5:]]


async def _close_books(place: Place) -> None:
    """Ends open episodes, as their time-out would, and signs all logs."""
    for version in VERSIONS:
        with place.housekeeper(version) as housekeeper:
            await housekeeper.work(0.0)
            await housekeeper.episode_store.close()


async def _keep_house(place: Place) -> None:
    """A further replica without clients: it ends idle episodes and signs, in short intervals."""
    with place.housekeeper(VERSIONS[0]) as housekeeper:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            with suppress(StoreError):
                await housekeeper.work(_IDLE_SECONDS)


def _accused(place: Place) -> Iterator[Finding]:
    """The problems that our own audit finds: none, because the service is honest."""
    with closing(place.ledger()) as ledger:
        verifications = [verify_run(run.id, ledger, place.evidence()) for run in ledger.runs()]
    for verification in verifications:
        yield from (
            Finding("accused", f"{verification.subject}: {problem}")
            for problem in verification.problems
        )

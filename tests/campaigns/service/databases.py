"""Faults of a ledger's database."""

import asyncio
import os
import random
import resource
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg

from campaigns.service.chaos import Fault
from campaigns.service.crew import Crew

_NO_LIMIT = resource.RLIM_INFINITY
_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Sqlite:
    """A file that another process locks, on a disk that is full."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def faults(self) -> Sequence[Fault]:
        return self._lock, self._fill_disk

    async def _lock(self, crew: Crew, chance: random.Random) -> None:
        await asyncio.to_thread(self._lock_for, crew, chance.uniform(0.1, 1.5))

    def _lock_for(self, crew: Crew, seconds: float) -> None:
        with closing(sqlite3.connect(self._path, timeout=1.0, isolation_level=None)) as ledger:
            try:
                ledger.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                return  # a stopped service may hold it
            crew.count("database: locked", "ledger")
            time.sleep(seconds)

    async def _fill_disk(self, crew: Crew, chance: random.Random) -> None:
        """Limits the size of the service's files, which has the effect of a full disk."""
        pids = [service.program.pid for service in crew.services]
        if any(pid is not None and _limit_files(pid, 0) for pid in pids):
            crew.count("database: disk full", "ledger")
        await asyncio.sleep(chance.uniform(0.1, 1.0))
        for pid in pids:
            if pid is not None:
                _limit_files(pid, _NO_LIMIT)


class Postgres:
    """A server that cuts connections, crashes, and locks tables; `url` is its own address."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def faults(self) -> Sequence[Fault]:
        return self._cut, self._crash, self._lock

    async def _cut(self, crew: Crew, _: random.Random) -> None:
        terminate = f"SELECT count(pg_terminate_backend(pid)) {_OTHERS}"
        if await asyncio.to_thread(self._ask, terminate):
            crew.count("database: connections cut", "ledger")

    async def _crash(self, crew: Crew, _: random.Random) -> None:
        """The death of one backend makes the server drop all connections and recover from its
        log.
        """
        pid = await asyncio.to_thread(self._ask, f"SELECT min(pid) {_OTHERS}")
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if pid and psutil.Process(pid).name().startswith("postgres"):
                os.kill(pid, signal.SIGKILL)
                crew.count("database: server crashed", "ledger")

    async def _lock(self, crew: Crew, chance: random.Random) -> None:
        await asyncio.to_thread(self._lock_for, crew, chance.uniform(0.1, 1.5))

    def _lock_for(self, crew: Crew, seconds: float) -> None:
        with suppress(psycopg.Error), psycopg.connect(self._url) as ledger:
            ledger.execute("LOCK TABLE runs, steps IN ACCESS EXCLUSIVE MODE")
            crew.count("database: locked", "ledger")
            time.sleep(seconds)

    def _ask(self, question: str) -> int | None:
        """One number; null while the server recovers."""
        with suppress(psycopg.Error), psycopg.connect(self._url) as server:
            row = server.execute(question).fetchone()
            return row[0] if row else None
        return None


def _limit_files(pid: int, size: int) -> bool:
    """Limits a process's files; returns whether it exists."""
    try:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, _NO_LIMIT))
    except ProcessLookupError:
        return False
    return True

"""Clients of a PostgreSQL that write rows, one at a time, and record the acknowledged rows."""

import threading
import time
from itertools import count
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError

_CLIENTS = 3
_PAUSE_SECONDS = 0.1


class Rows:
    """The clients write while the block runs, even if the server fails."""

    def __init__(self, url: str) -> None:
        self.answered: list[int] = []
        self.servers: set[str] = set()
        """When each began that let a client in."""
        self._engine = create_engine(url, pool_pre_ping=True, isolation_level="AUTOCOMMIT")
        self._numbers = count()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write) for _ in range(_CLIENTS)]

    def __enter__(self) -> Self:
        with self._engine.connect() as connection:
            connection.execute(text("CREATE TABLE rows (number bigint PRIMARY KEY)"))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def lost(self) -> set[int]:
        """Acknowledged rows that are missing."""
        with self._engine.connect() as connection:
            return set(self.answered) - set(connection.scalars(text("SELECT number FROM rows")))

    def _write(self) -> None:
        while not self._over.is_set():
            try:
                with self._engine.connect() as connection:
                    self._write_to(connection)
            except DBAPIError:
                time.sleep(_PAUSE_SECONDS)

    def _write_to(self, connection: Connection) -> None:
        self.servers.add(str(connection.scalar(text("SELECT pg_postmaster_start_time()"))))
        while not self._over.is_set():
            number = next(self._numbers)
            connection.execute(text("INSERT INTO rows VALUES (:number)"), {"number": number})
            self.answered.append(number)
            time.sleep(0.001)  # a server that ends needs a core too

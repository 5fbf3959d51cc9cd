"""The slow and the rude clients of a storm, in a process of their own until it is told to end.

So that what is measured of healthy clients is none of theirs.
"""

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from typing import NamedTuple

import uvloop

from benchmarks.machine import allow_many_files
from benchmarks.rude_clients import RUDE
from benchmarks.slow_clients import SLOW, Client
from benchmarks.wire import Place

_PAUSE_SECONDS = 1.0


class Seen(NamedTuple):
    """What they saw."""

    rounds: dict[str, int]
    """How often each kind of client came."""
    server_errors: int
    """Answers of 500 and more."""


class Crowd:
    """Its process, and after its end what it saw."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self.seen = Seen({}, 0)

    def end(self) -> None:
        self._process.terminate()
        said, _ = self._process.communicate()
        if self._process.returncode == 0:
            self.seen = Seen(**json.loads(said))


@contextmanager
def gathered(place: Place, slow: int, rude: int, within: float) -> Iterator[Crowd]:
    """So many of each while the block runs; they come for the first time within these seconds."""
    given = [*place, slow, rude, within]
    command = [sys.executable, "-m", "benchmarks.crowd", *map(str, given)]
    crowd = Crowd(subprocess.Popen(command, stdout=subprocess.PIPE))
    try:
        yield crowd
    finally:
        crowd.end()


async def _gather(place: Place, clients: list[Client], within: float) -> Seen:
    rounds: Counter[str] = Counter()
    num_errors = 0

    async def come_again_and_again(client: Client) -> None:
        """What happens to such a client is no error; a service that is gone is one to others."""
        nonlocal num_errors
        await asyncio.sleep(random.uniform(0, within))
        while True:
            await asyncio.sleep(random.uniform(0, 2 * _PAUSE_SECONDS))
            said = b""
            with suppress(OSError):
                said = await client(place)
            rounds[client.__name__] += 1
            num_errors += said.startswith(b"HTTP/1.1 5")

    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    tasks = [asyncio.create_task(come_again_and_again(client)) for client in clients]
    await asyncio.wait({*tasks, asyncio.create_task(told.wait())}, return_when="FIRST_COMPLETED")
    for task in tasks:
        task.cancel()
    for problem in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(problem, Exception):
            raise problem
    return Seen(dict(rounds), num_errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("slow", type=int)
    parser.add_argument("rude", type=int)
    parser.add_argument("within", type=float)
    given = parser.parse_args()
    allow_many_files()
    kinds = [*islice(cycle(SLOW), given.slow), *islice(cycle(RUDE), given.rude)]
    place = Place(given.host, given.port, given.path)
    print(json.dumps(uvloop.run(_gather(place, kinds, given.within))._asdict()))


if __name__ == "__main__":
    main()

"""A process that can be started, killed, stopped and restarted."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_GRACE_SECONDS = 60.0


class Program:
    """At most one process at a time; it ends with this process at the latest."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.lives = 0
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Null while it is not running."""
        is_alive = self._process and self._process.poll() is None
        return self._process.pid if self._process and is_alive else None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Starts it."""
        assert self.pid is None, f"{self.name} runs already"
        self.lives += 1
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> bool:
        """Sends a signal; whether there was a process to receive it."""
        if self.pid is None:
            return False
        os.kill(self.pid, number)
        return True

    def kill(self) -> bool:
        """Kills it at once; whether it was running."""
        was_running = self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        return was_running

    async def end(self) -> bool:
        """Terminates it; whether it ended in time, without being killed."""
        process, deadline = self._process, time.monotonic() + _GRACE_SECONDS
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        while process and process.poll() is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        if process is None or process.poll() is not None:
            return True
        self.kill()
        return False

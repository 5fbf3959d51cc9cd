"""A name in a bucket that one process has, for as long as it says so again and again.

No two machines' clocks are compared: whoever waits sees that what is said there stays the same.
"""

import time
import uuid
from contextlib import suppress

from agentworld.errors import StoreError
from agentworld.storage.address import shown
from agentworld.storage.folder import open_folder, translated


class Lease:
    """Lapses when its holder has said nothing for `seconds`. Its failures are StoreErrors."""

    def __init__(self, url: str, busy: str, seconds: float) -> None:
        folder, _, self._name = url.rpartition("/")
        self._url = shown(url)
        self._folder = open_folder(folder)
        self._busy = busy
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._times = 0

    def take(self) -> None:
        """Waits for a holder that was killed; raises StoreError where it is alive."""
        began = since = time.monotonic()
        last: bytes | None = None
        with translated(self._url):
            while not self._created():
                told = self._told()
                if told != last:
                    last, since = told, time.monotonic()
                elif told and time.monotonic() - since >= self._seconds:
                    with suppress(FileNotFoundError):
                        self._folder.remove(self._name)
                elif time.monotonic() - began >= 3 * self._seconds:
                    raise StoreError(self._busy)
                time.sleep(self._seconds / 10)

    def renew(self) -> None:
        """Says so again; raises StoreError where it lapsed and another process has it."""
        with translated(self._url):
            if not self._is_mine():
                raise StoreError(self._busy)
            self._folder.write(self._name, self._words())

    def release(self) -> None:
        """Lets the next one take it at once."""
        with translated(self._url), suppress(FileNotFoundError):
            if self._is_mine():
                self._folder.remove(self._name)

    def _created(self) -> bool:
        try:
            self._folder.create(self._name, self._words())
        except FileExistsError:
            return False
        return True

    def _words(self) -> bytes:
        self._times += 1
        return f"{self._holder} {self._times}".encode()

    def _told(self) -> bytes | None:
        try:
            return self._folder.read(self._name)
        except FileNotFoundError:
            return None

    def _is_mine(self) -> bool:
        return (self._told() or b"").startswith(self._holder.encode())

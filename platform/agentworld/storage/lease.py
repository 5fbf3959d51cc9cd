"""A name in a bucket that one process has, for as long as it says so again and again.

No two machines' clocks are compared: whoever waits sees that what is said there stays the same.
"""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentworld.errors import StoreError
from agentworld.records.garbled import redact
from agentworld.storage.folder import open_folder, translate_errors


class Lease:
    """Lapses when its holder has said nothing for `seconds`. Its failures are StoreErrors."""

    def __init__(self, url: str, busy: str, seconds: float) -> None:
        folder, _, self._name = url.rpartition("/")
        self._url = redact(url)
        self._folder = open_folder(folder)
        self._busy = busy
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._times = 0
        self._is_lost = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Takes it, and says so until the block ends, whatever the block is at."""
        self.take()
        end = threading.Event()

        def renew_until_end() -> None:
            while not self._is_lost and not end.wait(self._seconds / 4):
                with suppress(StoreError):  # what is gone may be back before it lapses
                    self._renew()

        renewal = threading.Thread(target=renew_until_end, daemon=True)
        renewal.start()
        try:
            yield
        finally:
            end.set()
            renewal.join()
            with suppress(StoreError):  # it lapses by itself
                self.release()

    def take(self) -> None:
        """Waits for a holder that was killed; raises StoreError where it is alive."""
        start = since = time.monotonic()
        last: bytes | None = None
        with translate_errors(self._url):
            while not self._create():
                content = self._read()
                if content != last:
                    last, since = content, time.monotonic()
                elif content and time.monotonic() - since >= self._seconds:
                    with suppress(FileNotFoundError):
                        self._folder.remove(self._name)
                elif time.monotonic() - start >= 3 * self._seconds:
                    raise StoreError(self._busy)
                time.sleep(self._seconds / 10)

    def check(self) -> None:
        """Says so again; raises StoreError where it lapsed and another process has it."""
        self._renew()
        if self._is_lost:
            raise StoreError(self._busy)

    def release(self) -> None:
        """Lets the next one take it at once."""
        with translate_errors(self._url), suppress(FileNotFoundError):
            if self._is_mine():
                self._folder.remove(self._name)

    def _renew(self) -> None:
        with translate_errors(self._url):
            self._is_lost = self._is_lost or not self._is_mine()
            if not self._is_lost:
                self._folder.write(self._name, self._words())

    def _create(self) -> bool:
        try:
            self._folder.create(self._name, self._words())
        except FileExistsError:
            return False
        return True

    def _words(self) -> bytes:
        self._times += 1
        return f"{self._holder} {self._times}".encode()

    def _read(self) -> bytes | None:
        try:
            return self._folder.read(self._name)
        except FileNotFoundError:
            return None

    def _is_mine(self) -> bool:
        return (self._read() or b"").startswith(self._holder.encode())

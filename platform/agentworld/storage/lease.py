"""A lease in a bucket, held by one process while it renews it.

It does not compare clocks: a waiting process observes whether the lease changes.
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
    """Lapses if its holder does not renew it for `seconds`. Failures are StoreErrors."""

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
        """Acquires the lease and renews it in the background until the block ends."""
        self.take()
        end = threading.Event()

        def renew_until_end() -> None:
            while not self._is_lost and not end.wait(self._seconds / 4):
                with suppress(StoreError):  # a failed bucket may be back before it lapses
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
        """Waits for a killed holder's lease to lapse; raises StoreError if the holder is alive."""
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
        """Renews the lease; raises StoreError if it lapsed and another process holds it."""
        self._renew()
        if self._is_lost:
            raise StoreError(self._busy)

    def release(self) -> None:
        """Releases the lease, so that another process can acquire it at once."""
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

"""Fetches a model's files from a folder or a bucket: reads, hashes and writes them in one pass.

A file is read in several concurrent ranges, which needs little memory and is faster than one
connection. Several files are hashed at once, because one hash keeps one processor busy.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

from fsspec.core import url_to_fs

from agentworld.errors import InputError, NotFound, StoreError
from agentworld.records.base import Digest
from agentworld.records.garbled import redact
from agentworld.storage.bases import path_in
from agentworld.storage.folder import translate_errors

_RANGE_BYTES = 16 << 20
_FILES_AT_ONCE = 4
_RANGES_AHEAD = 4
"""Of one file. Memory use is at most 320 MiB: these and one more range of each file."""


def fetch_files(url: str, files: Mapping[str, Digest], folder: Path) -> None:
    """Copies the named files; raises InputError naming one that has another digest.

    Raises NotFound naming a missing one, InputError for a name that leads out of the folder, and
    StoreError. Existing files are replaced.
    """
    source = Source(url)
    paths = {name: path_in(folder, name, source.address) for name in files}
    with (
        ThreadPoolExecutor(_FILES_AT_ONCE * _RANGES_AHEAD) as ranges,
        ThreadPoolExecutor(_FILES_AT_ONCE) as pool,
    ):
        copier = _Copier(source, ranges)
        copies = [
            pool.submit(copier.copy, name, digest, paths[name]) for name, digest in files.items()
        ]
        try:
            ended, _ = wait(copies, return_when=FIRST_EXCEPTION)
        finally:
            copier.is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
        for copy in ended:
            copy.result()


class Source:
    """A folder from which ranges of files are read."""

    def __init__(self, url: str) -> None:
        self.address = redact(url)
        with translate_errors(self.address):
            self._system: Any
            self._system, root = url_to_fs(url, use_listings_cache=False)
        self._root = root.rstrip("/")

    def size(self, name: str) -> int:
        """In bytes; raises NotFound."""
        with translate_errors(self.address):
            try:
                return int(self._system.size(f"{self._root}/{name}"))
            except FileNotFoundError as error:
                raise NotFound(
                    f"there is no {name} at {self.address}; put the model's files there"
                ) from error

    def read(self, name: str, begin: int, end: int) -> bytes:
        """Raises StoreError for a file that ends before `end`."""
        with translate_errors(self.address):
            piece: bytes = self._system.cat_file(f"{self._root}/{name}", start=begin, end=end)
        if len(piece) != end - begin:
            raise StoreError(f"{self.address} ends {name} too early; begin again")
        return piece


class _Copier:
    """The copies of one fetch. Each ends early when another has failed."""

    def __init__(self, source: Source, ranges: ThreadPoolExecutor) -> None:
        self.is_over = Event()
        self._source = source
        self._ranges = ranges

    def copy(self, name: str, digest: Digest, path: Path) -> None:
        """Raises InputError for another digest."""
        sha256 = hashlib.sha256()
        with translate_errors(str(path.parent)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as copy:
                for piece in self._pieces(name):
                    sha256.update(piece)
                    copy.write(piece)
                    if self.is_over.is_set():
                        return
        if f"sha256:{sha256.hexdigest()}" != digest:
            raise InputError(
                f"{name} at {self._source.address} does not match the manifest; restore it or pin"
                " again"
            )

    def _pieces(self, name: str) -> Iterator[bytes]:
        """The file's chunks in order, with a few ranges read ahead."""
        ahead: deque[Future[bytes]] = deque()
        size = self._source.size(name)
        try:
            for begin in range(0, size, _RANGE_BYTES):
                if len(ahead) == _RANGES_AHEAD:
                    yield ahead.popleft().result()
                end = min(begin + _RANGE_BYTES, size)
                ahead.append(self._ranges.submit(self._source.read, name, begin, end))
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()

"""Files of a model from wherever they are kept: read, hashed and written in one pass.

A file is read in ranges, several of them at once, which fits into little memory and takes more of
a network than one connection. Several files are hashed at once, since a hash takes one processor.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs

from agentworld.errors import InputError, NotFound, StoreError
from agentworld.records.base import Digest
from agentworld.storage.address import redact
from agentworld.storage.folder import translate_errors

_RANGE_BYTES = 16 << 20
_FILES_AT_ONCE = 4
_RANGES_AHEAD = 4
"""Of one file. At most 256 MiB are in memory: files, ranges and their size multiplied."""


def fetch_files(url: str, files: Mapping[str, Digest], folder: Path) -> None:
    """Copies the files of these names; raises InputError naming one that has another digest.

    Raises NotFound naming one that is not there, and StoreError. What was copied before is copied
    anew: nobody but a digest knows whether it is whole.
    """
    with translate_errors(redact(url)):
        system, root = url_to_fs(url, use_listings_cache=False)
        source = Source(system, root.rstrip("/"), redact(url))
        with (
            ThreadPoolExecutor(_FILES_AT_ONCE * _RANGES_AHEAD) as ranges,
            ThreadPoolExecutor(_FILES_AT_ONCE) as pool,
        ):
            copies = [
                pool.submit(_copy, source, name, digest, folder / name, ranges)
                for name, digest in sorted(files.items())
            ]
            try:
                for copy in copies:
                    copy.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


class Source:
    """A folder from which ranges are read."""

    def __init__(self, system: Any, root: str, address: str) -> None:
        self._system, self._root = system, root
        self.address = address

    def size(self, name: str) -> int:
        try:
            return int(self._system.size(f"{self._root}/{name}"))
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no {name} at {self.address}; put the model's files there"
            ) from error

    def read(self, name: str, begin: int, end: int) -> bytes:
        piece: bytes = self._system.cat_file(f"{self._root}/{name}", start=begin, end=end)
        if len(piece) != end - begin:
            raise StoreError(f"{self.address} ends {name} too early; begin again")
        return piece


def _copy(
    source: Source, name: str, digest: Digest, path: Path, ranges: ThreadPoolExecutor
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    sha256 = hashlib.sha256()
    with path.open("wb") as copy:
        for piece in _pieces(source, name, ranges):
            sha256.update(piece)
            copy.write(piece)
    if f"sha256:{sha256.hexdigest()}" != digest:
        raise InputError(
            f"{name} at {source.address} is not the file of the manifest; restore it or pin again"
        )


def _pieces(source: Source, name: str, ranges: ThreadPoolExecutor) -> Iterator[bytes]:
    """The file in its order, with a few ranges read ahead."""
    ahead: deque[Future[bytes]] = deque()
    size = source.size(name)
    try:
        for begin in range(0, size, _RANGE_BYTES):
            if len(ahead) == _RANGES_AHEAD:
                yield ahead.popleft().result()
            ahead.append(ranges.submit(source.read, name, begin, min(begin + _RANGE_BYTES, size)))
        while ahead:
            yield ahead.popleft().result()
    finally:
        for future in ahead:
            future.cancel()

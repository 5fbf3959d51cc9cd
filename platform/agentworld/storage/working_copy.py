"""A local folder that mirrors one in a bucket: downloads inputs and uploads outputs.

Models are trained and served from files, which buckets do not have. Objects are atomic, and a
manifest or a receipt, which declares others complete, is uploaded last. A file equals its object if
both have the same size and the same time, which is set to the bucket's.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fsspec.core import url_to_fs

from agentworld.errors import InputError, StoreError
from agentworld.records.base import digest_bytes
from agentworld.records.file import read_regular, write_whole
from agentworld.records.garbled import redact
from agentworld.storage.folder import TIME_FIELDS, translate_errors

_ORIGIN = ".origin"
_LOCK = ".lock"
_LAST = ("manifest.json", "checkpoint.json", "receipt.json")
_AT_ONCE = 4
"""Concurrent transfers of files. A driver may have several pieces of each in memory."""
_ROUNDING = 1e-3
_SETTLED_SECONDS = 2
_SMALL_BYTES = 1 << 20
"""Larger files are not written twice within a second."""
_DIGITS = 12

_Info = Mapping[str, object]
"""A driver's metadata of an object."""


class _Stamp(NamedTuple):
    """Identifies an unmodified file."""

    size: int
    modified_ns: int


class WorkingCopy:
    """The local copy of a folder in a bucket. Failures are StoreErrors; threads may share it."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.url = url
        with translate_errors(redact(url)):
            self._system, base = url_to_fs(url, use_listings_cache=False)
        self._base = base.rstrip("/")
        self._stamps: dict[str, _Stamp] = {}

    def to_path(self, word: str) -> str:
        """Converts an address in the bucket to its path in the copy; returns other words
        unchanged.
        """
        if word != self.url and not word.startswith(f"{self.url}/"):
            return word
        return str(self._path(word.removeprefix(self.url).strip("/")))

    def to_address(self, word: str) -> str:
        """Converts a path in the copy to its address in the bucket; returns other words
        unchanged.
        """
        if not Path(word).is_relative_to(self.root):
            return word
        return f"{self.url}/{self._name(Path(word))}".rstrip("/")

    def download(self, *paths: Path, only: re.Pattern[str] | None = None) -> None:
        """Downloads the files at and under these paths that differ from the bucket's.

        `only` filters their names relative to the copy's root.
        """
        with translate_errors(redact(self.url)), self._hold_lock():
            objects = {
                name: info for path in paths for name, info in self._list_objects(path).items()
            }
            names = [name for name in objects if only is None or only.fullmatch(name)]
            others = [name for name in names if not _is_of(objects[name], self._path(name))]
            _run_all(lambda name: self._download(name, objects[name]), others)

    def put(self, *paths: Path) -> None:
        """Uploads the files at and under these paths, except drafts and files that were uploaded
        before.
        """
        with translate_errors(redact(self.url)):
            names = [self._name(path) for parent in paths for path in _files(parent)]
            last = [name for name in names if name.rpartition("/")[2] in _LAST]
            _run_all(self._put, [name for name in names if name not in last])
            _run_all(self._put, last)

    def prune(self, folder: Path) -> None:
        """Deletes the bucket's files that this folder lacks, manifests and receipts first."""
        with translate_errors(redact(self.url)):
            orphans = [name for name in self._list_objects(folder) if not self._path(name).exists()]
            for name in sorted(orphans, key=lambda name: name.rpartition("/")[2] not in _LAST):
                self._system.rm_file(f"{self._base}/{name}")

    def has(self, path: Path) -> bool:
        """Whether the bucket has this file."""
        with translate_errors(redact(self.url)):
            return self._name(path) in self._list_objects(path)

    def _list_objects(self, path: Path) -> dict[str, _Info]:
        """The objects at and under a path, by name, with their driver's metadata."""
        address = f"{self._base}/{self._name(path)}".rstrip("/")
        objects = self._system.find(address, detail=True)
        return {name.removeprefix(f"{self._base}/"): info for name, info in objects.items()}

    def _download(self, name: str, info: _Info) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        # Another process may have deleted it since it was listed.
        with suppress(FileNotFoundError):
            self._system.get_file(f"{self._base}/{name}", str(draft))
            _date(draft, info)
            draft.replace(path)
            self._stamps[name] = _stamp(path)

    def _put(self, name: str) -> None:
        path = self._path(name)
        try:
            stamp = _stamp(path)
            if self._stamps.get(name) == stamp:
                return
            self._system.put_file(str(path), f"{self._base}/{name}")
            if _stamp(path) == stamp:  # otherwise it changed in the meantime, and is uploaded again
                _date(path, self._system.info(f"{self._base}/{name}"))
                self._stamps[name] = _stamp(path)
        except FileNotFoundError:
            if path.exists():  # a bucket that is missing
                raise
            # A training deletes old checkpoints.

    def _path(self, name: str) -> Path:
        """Raises StoreError for a name outside of the copy."""
        if name.startswith("/") or ".." in name.split("/"):
            raise StoreError(f"{redact(self.url)} has an object {name!r}; remove it")
        return self.root / name

    def _name(self, path: Path) -> str:
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Excludes other processes of this machine that use the same copy."""
        with (self.root / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def is_bucket(store: str) -> bool:
    """Whether a store is given by a URL and not by a path."""
    return "://" in store


def open_copy(url: str, scratch: Path) -> WorkingCopy:
    """This machine's only working copy of a folder in a bucket, under `scratch`."""
    url = url.rstrip("/")
    root = scratch.resolve() / _folder_of(url)
    try:
        scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        root.mkdir(exist_ok=True, mode=0o700)
        if root.stat().st_uid != os.geteuid():
            raise PermissionError
        write_whole(root / _ORIGIN, url.encode())
    except PermissionError as error:
        raise InputError(
            f"{root} belongs to another user; set AGENTWORLD_SCRATCH to a folder of your own"
        ) from error
    return _open_at(root, url)


def copy_of(path: Path) -> WorkingCopy | None:
    """The working copy that contains a path; null for any other path."""
    for folder in (path, *path.parents):
        if (folder / _ORIGIN).is_file():
            url = read_regular(folder / _ORIGIN).decode()
            return _open_at(folder, url) if folder.name == _folder_of(url) else None
    return None


def address_of(path: str) -> str:
    """The bucket address of a path in a working copy; any other path unchanged."""
    copy = copy_of(Path(path))
    return copy.to_address(path) if copy else path


def _folder_of(url: str) -> str:
    """The unique name of a copy's folder."""
    readable = re.sub(r"[^a-z0-9]+", "-", redact(url).lower()).strip("-")
    return f"{readable}-{digest_bytes(url.encode()).removeprefix('sha256:')[:_DIGITS]}"


@cache
def _open_at(root: Path, url: str) -> WorkingCopy:
    return WorkingCopy(root, url)


def _files(path: Path) -> list[Path]:
    """The files that are not temporary."""
    paths = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in paths if file.is_file() and not is_draft(file.relative_to(path))]


def is_draft(path: Path) -> bool:
    """Whether a file is never uploaded: a draft, or hidden."""
    return path.suffix == ".draft" or any(part.startswith(".") for part in path.parts)


def _stamp(path: Path) -> _Stamp:
    metadata = path.stat()
    return _Stamp(metadata.st_size, metadata.st_mtime_ns)


def _is_of(info: _Info, path: Path) -> bool:
    """Whether a file exists and equals the object; compares only sizes if the time is unknown."""
    if not path.exists():
        return False
    metadata, modified_at = path.stat(), _modified_at(info)
    if metadata.st_size != info["size"] or modified_at is None:
        return metadata.st_size == info["size"]
    # Times are whole seconds: the object may have changed within the second of its download.
    is_settled = (
        metadata.st_size > _SMALL_BYTES or metadata.st_ctime - modified_at > _SETTLED_SECONDS
    )
    return is_settled and abs(metadata.st_mtime - modified_at) < _ROUNDING


def _date(path: Path, info: _Info) -> None:
    """Sets a file's time to its object's, because the newest of several files is found by time."""
    if (modified_at := _modified_at(info)) is not None:
        os.utime(path, (modified_at, modified_at))


def _modified_at(info: _Info) -> float | None:
    """The time of an object's last write, in seconds since the epoch; null if unknown."""
    modified_at = next((info[name] for name in TIME_FIELDS if name in info), None)
    if isinstance(modified_at, datetime):
        return modified_at.timestamp()
    return modified_at if isinstance(modified_at, float) else None


def _run_all(work: Callable[[str], None], names: Iterable[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(work, name) for name in names]:
            done.result()

"""A folder here that stands for one in a bucket: what is needed is brought, what is made put back.

Models are trained and served from files, and a bucket has none. An object is there whole or not at
all, and what says that others are whole, a manifest or a receipt, is put last. A file is its object
where both have one size and one time: the time that the bucket gave it.
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
"""Files under way. A driver may have several pieces of each in memory."""
_ROUNDING = 1e-3
_SETTLED_SECONDS = 2
_SMALL_BYTES = 1 << 20
"""No file of more is written twice in a second."""
_DIGITS = 12

_Info = Mapping[str, object]
"""What a driver tells of an object."""


class _Stamp(NamedTuple):
    """By which a file is known again that was not written to."""

    size: int
    modified_ns: int


class WorkingCopy:
    """Of a folder in a bucket. Its failures are StoreErrors; threads may share it."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.url = url
        with translate_errors(redact(url)):
            self._system, base = url_to_fs(url, use_listings_cache=False)
        self._base = base.rstrip("/")
        self._stamps: dict[str, _Stamp] = {}

    def to_path(self, word: str) -> str:
        """An address in the bucket as the path of its copy; any other word as it is."""
        if word != self.url and not word.startswith(f"{self.url}/"):
            return word
        return str(self._path(word.removeprefix(self.url).strip("/")))

    def to_address(self, word: str) -> str:
        """The path of a copy as its address in the bucket; any other word as it is."""
        if not Path(word).is_relative_to(self.root):
            return word
        return f"{self.url}/{self._name(Path(word))}".rstrip("/")

    def download(self, *paths: Path, only: re.Pattern[str] | None = None) -> None:
        """Brings the files at and under these paths that are not as the bucket has them.

        `only` is for their names from the copy's root on.
        """
        with translate_errors(redact(self.url)), self._hold_lock():
            objects = {
                name: info for path in paths for name, info in self._list_objects(path).items()
            }
            names = [name for name in objects if only is None or only.fullmatch(name)]
            others = [name for name in names if not _is_of(objects[name], self._path(name))]
            _run_all(lambda name: self._download(name, objects[name]), others)

    def put(self, *paths: Path) -> None:
        """Puts the files at and under these paths, but for drafts and what was put before."""
        with translate_errors(redact(self.url)):
            names = [self._name(path) for parent in paths for path in _files(parent)]
            last = [name for name in names if name.rpartition("/")[2] in _LAST]
            _run_all(self._put, [name for name in names if name not in last])
            _run_all(self._put, last)

    def prune(self, folder: Path) -> None:
        """Takes away from the bucket what is not in this folder, and what vouches for it first."""
        with translate_errors(redact(self.url)):
            orphans = [name for name in self._list_objects(folder) if not self._path(name).exists()]
            for name in sorted(orphans, key=lambda name: name.rpartition("/")[2] not in _LAST):
                self._system.rm_file(f"{self._base}/{name}")

    def has(self, path: Path) -> bool:
        """Whether the bucket has this file."""
        with translate_errors(redact(self.url)):
            return self._name(path) in self._list_objects(path)

    def _list_objects(self, path: Path) -> dict[str, _Info]:
        """The objects at and under a path, by name, and what their driver tells of each."""
        address = f"{self._base}/{self._name(path)}".rstrip("/")
        objects = self._system.find(address, detail=True)
        return {name.removeprefix(f"{self._base}/"): info for name, info in objects.items()}

    def _download(self, name: str, info: _Info) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        # Another process may have taken it away since it was listed.
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
            if _stamp(path) == stamp:  # else it was written to meanwhile, and is put again
                _date(path, self._system.info(f"{self._base}/{name}"))
                self._stamps[name] = _stamp(path)
        except FileNotFoundError:
            if path.exists():  # it is the bucket that is not there
                raise
            # A training takes old checkpoints away.

    def _path(self, name: str) -> Path:
        """Raises StoreError for a name that would lie outside of the copy."""
        if name.startswith("/") or ".." in name.split("/"):
            raise StoreError(f"{redact(self.url)} has an object {name!r}; take it away")
        return self.root / name

    def _name(self, path: Path) -> str:
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Among the processes of this machine, each of which needs the same."""
        with (self.root / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def is_bucket(store: str) -> bool:
    """Whether a store is told by a URL, and not by a path."""
    return "://" in store


def open_copy(url: str, scratch: Path) -> WorkingCopy:
    """The one working copy of a folder in a bucket that this machine has, under `scratch`."""
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
            f"{root} is not this user's; set AGENTWORLD_SCRATCH to a folder of your own"
        ) from error
    return _open_at(root, url)


def copy_of(path: Path) -> WorkingCopy | None:
    """The working copy that a path lies in; null for a path that stands for nothing else."""
    for folder in (path, *path.parents):
        if (folder / _ORIGIN).is_file():
            url = read_regular(folder / _ORIGIN).decode()
            return _open_at(folder, url) if folder.name == _folder_of(url) else None
    return None


def address_of(path: str) -> str:
    """The address of what lies in a working copy; any other path as it is."""
    copy = copy_of(Path(path))
    return copy.to_address(path) if copy else path


def _folder_of(url: str) -> str:
    """What a copy's folder is called: no other folder is taken for one."""
    readable = re.sub(r"[^a-z0-9]+", "-", redact(url).lower()).strip("-")
    return f"{readable}-{digest_bytes(url.encode()).removeprefix('sha256:')[:_DIGITS]}"


@cache
def _open_at(root: Path, url: str) -> WorkingCopy:
    return WorkingCopy(root, url)


def _files(path: Path) -> list[Path]:
    """Those that are meant to stay."""
    paths = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in paths if file.is_file() and not is_draft(file.relative_to(path))]


def is_draft(path: Path) -> bool:
    """Whether a file is put into no bucket: a draft, or hidden."""
    return path.suffix == ".draft" or any(part.startswith(".") for part in path.parts)


def _stamp(path: Path) -> _Stamp:
    metadata = path.stat()
    return _Stamp(metadata.st_size, metadata.st_mtime_ns)


def _is_of(info: _Info, path: Path) -> bool:
    """Whether a file is there, and the object's; by its size alone where nobody tells a time."""
    if not path.exists():
        return False
    metadata, modified_at = path.stat(), _modified_at(info)
    if metadata.st_size != info["size"] or modified_at is None:
        return metadata.st_size == info["size"]
    # Times are whole seconds: what was brought right away may have been changed in the same one.
    is_settled = (
        metadata.st_size > _SMALL_BYTES or metadata.st_ctime - modified_at > _SETTLED_SECONDS
    )
    return is_settled and abs(metadata.st_mtime - modified_at) < _ROUNDING


def _date(path: Path, info: _Info) -> None:
    """Gives a file its object's time: which of several is the newest is asked of files, too."""
    if (modified_at := _modified_at(info)) is not None:
        os.utime(path, (modified_at, modified_at))


def _modified_at(info: _Info) -> float | None:
    """When an object was put there, in seconds since the epoch; null where nobody tells."""
    modified_at = next((info[name] for name in TIME_FIELDS if name in info), None)
    if isinstance(modified_at, datetime):
        return modified_at.timestamp()
    return modified_at if isinstance(modified_at, float) else None


def _run_all(work: Callable[[str], None], names: Iterable[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(work, name) for name in names]:
            done.result()

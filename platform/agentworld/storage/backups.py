"""The backups at one destination, which is a folder or a bucket.

objects/                      long texts, as in an object store; all backups share them
mirror/                       copies of signed records, as in an evidence mirror; shared too
backups/TIME/NAME.dump        dumps of databases
backups/TIME/files.sha256     all files of the backup, for `sha256sum --check`
backups/TIME/manifest.json    written last
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from agentworld.errors import NotFound, StoreError
from agentworld.records.backup import Backup, BackupFile
from agentworld.records.base import Digest, digest_bytes, digest_file, first_problem
from agentworld.records.file import draft
from agentworld.records.garbled import redact
from agentworld.storage.folder import open_folder, translate_errors
from agentworld.storage.lease import Lease
from agentworld.storage.objects import ObjectStore, WriteOnce

FILES = "files.sha256"
_TEXTS, _MIRROR, _BACKUPS = "objects", "mirror", "backups"
_MANIFEST = "manifest.json"
_WHOLE = re.compile(rf"{_BACKUPS}/([\w.]+)/{_MANIFEST}", re.ASCII)
_LINE = re.compile(r"([0-9a-f]{64})  (.+)", re.ASCII)
_PIECE_BYTES = 1 << 20
_log = logging.getLogger(__name__)

Digests = Mapping[str, Digest]
"""Digests of files, by their paths at the destination."""


class BackupStore:
    """Several processes may use one destination. Failures are StoreErrors."""

    def __init__(self, url: str) -> None:
        self.display_url = redact(url)
        self._url = url.rstrip("/")
        with translate_errors(self.display_url):
            self._folder = open_folder(self._url)
        self.texts = ObjectStore(f"{self._url}/{_TEXTS}")
        self.mirror = WriteOnce(f"{self._url}/{_MIRROR}")

    @contextmanager
    def hold(self, seconds: float) -> Iterator[Lease]:
        """The exclusive right to complete or remove backups.

        It lapses `seconds` after its holder was killed. Raises StoreError if it is taken.
        """
        busy = f"another backup to {self.display_url} is being finished; wait until it has ended"
        lease = Lease(f"{self._url}/lease", busy, seconds)
        with lease.hold():
            yield lease

    def names(self) -> list[str]:
        """The names of all complete backups, the oldest first."""
        matches = map(_WHOLE.fullmatch, self._paths(f"{_BACKUPS}/"))
        return [match[1] for match in matches if match]

    def read(self, name: str) -> Backup:
        """The manifest of a backup; raises NotFound, and StoreError for a damaged one."""
        path = f"{_BACKUPS}/{name}/{_MANIFEST}"
        try:
            with self._open(path) as file:
                data = file.read()
            return Backup.model_validate_json(data)
        except NotFound as error:
            names = ", ".join(self.names()) or "none"
            raise NotFound(
                f"{self.display_url} has no backup {name!r}; its backups are {names}"
            ) from error
        except ValidationError as error:
            raise self._damaged(path, first_problem(error)) from error

    def files(self, name: str) -> dict[str, Digest]:
        """All files of a backup; raises NotFound, and StoreError for a damaged list."""
        backup, path = self.read(name), f"{_BACKUPS}/{name}/{FILES}"
        with self._open(path) as file:
            data = file.read()
        if digest_bytes(data) != backup.files.content:
            raise self._damaged(path, "its digest is not that of the manifest")
        matches = map(_LINE.fullmatch, data.decode().splitlines())
        return {match[2]: f"sha256:{match[1]}" for match in matches if match}

    def digest_of(self, path: str) -> Digest:
        """The current digest of a file; raises NotFound."""
        with self._open(path) as file:
            return _digest(_pieces(file))

    def put_file(self, name: str, source: Path) -> BackupFile:
        """Copies a file into a backup and reads it back; raises StoreError if it reads
        differently.
        """
        path, digest = dump_path(name, source.name), digest_file(source)
        with translate_errors(self.display_url):
            self._folder.put_file(path, source)
        if self.digest_of(path) != digest:
            raise self._damaged(path, "it reads differently than it was written")
        return BackupFile(content=digest, size=source.stat().st_size)

    def put_manifest(self, name: str, backup: Backup) -> None:
        """Completes a backup by writing its manifest."""
        with translate_errors(self.display_url):
            data = backup.model_dump_json(indent=2).encode() + b"\n"
            self._folder.write(f"{_BACKUPS}/{name}/{_MANIFEST}", data)

    def download(self, path: str, digest: Digest, target: Path) -> None:
        """Copies a file to this machine; raises StoreError if it is damaged."""
        with draft(target, b"") as file:
            with self._open(path) as source, file.open("wb") as copy:
                actual = _digest(_copied(_pieces(source), copy))
            if actual != digest:
                raise self._damaged(path, "its digest is not that of the backup")
            file.replace(target)

    def prune(self, keep: int) -> None:
        """Removes all complete backups except the newest `keep`, leftovers of interrupted ones, and
        texts that no backup uses. The caller must hold the lease.
        """
        names = self.names()
        for name in names[:-keep]:  # without its manifest it is incomplete
            self._remove(f"{_BACKUPS}/{name}/{_MANIFEST}")
        newest = names[-keep:]
        for path in self._paths(f"{_BACKUPS}/"):
            if path.split("/")[1] not in newest:
                self._remove(path)
        self._erase_texts_beside(newest)

    def _erase_texts_beside(self, names: Iterable[str]) -> None:
        orphans = set(self.texts.digests())
        for name in names:
            try:
                orphans -= texts_of(self.files(name))
            except (NotFound, StoreError) as error:
                if error.retryable:
                    raise
                # Its texts are unknown, so none is removed until it is gone.
                _log.warning("old texts stay in %s: %s", self.display_url, error)
                return
        for digest in orphans:
            self.texts.erase(digest)

    def _paths(self, prefix: str) -> list[str]:
        with translate_errors(self.display_url):
            return self._folder.names(prefix)

    def _remove(self, path: str) -> None:
        with translate_errors(self.display_url):
            self._folder.remove(path)

    @contextmanager
    def _open(self, path: str) -> Iterator[BinaryIO]:
        with translate_errors(self.display_url):
            try:
                file = self._folder.open(path)
            except FileNotFoundError as error:
                raise NotFound(f"{self.display_url} has no {path}; it was removed") from error
            with file:
                yield file

    def _damaged(self, path: str, reason: str) -> StoreError:
        return StoreError(
            f"{path} in {self.display_url} is damaged: {reason}; use another backup",
            retryable=False,
        )


def dump_path(backup: str, name: str) -> str:
    """The path of a file that belongs to a single backup."""
    return f"{_BACKUPS}/{backup}/{name}"


def text_path(digest: Digest) -> str:
    """The path of a long text."""
    number = digest.removeprefix("sha256:")
    return f"{_TEXTS}/{number[:2]}/{number}"


def copy_path(name: str) -> str:
    """The path of a copy of a signed record, by its name in the evidence mirror."""
    return f"{_MIRROR}/{name}"


def texts_of(files: Digests) -> set[Digest]:
    """The long texts among files."""
    return {digest for path, digest in files.items() if path.startswith(f"{_TEXTS}/")}


def copies_of(files: Digests) -> dict[str, Digest]:
    """The copies of signed records among files, by their names in the evidence mirror."""
    start = f"{_MIRROR}/"
    return {
        path.removeprefix(start): digest for path, digest in files.items() if path.startswith(start)
    }


def write_list(files: Digests, path: Path) -> None:
    """Writes the list of a backup's files, in the form of `sha256sum`."""
    with path.open("w", encoding="utf-8") as file:
        for name in sorted(files):
            file.write(f"{files[name].removeprefix('sha256:')}  {name}\n")


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        yield piece


def _copied(pieces: Iterable[bytes], target: BinaryIO) -> Iterator[bytes]:
    for piece in pieces:
        target.write(piece)
        yield piece


def _digest(pieces: Iterable[bytes]) -> Digest:
    sha256 = hashlib.sha256()
    for piece in pieces:
        sha256.update(piece)
    return "sha256:" + sha256.hexdigest()

"""Backs up the record: long texts, a dump of the databases, then texts again and the evidence
mirror. `begin` copies the existing long texts before the dump, because retention may later erase
one that the dump names. `finish` copies newer texts, and the evidence mirror after the dump: a
checkpoint is in the mirror before it is in the ledger, so a mirror older than its ledger would look
as if copies had been removed.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from agentworld.errors import Conflict, InputError, NotFound, StoreError
from agentworld.recipes.environment import from_environment
from agentworld.records.backup import Backup
from agentworld.records.base import Digest, digest_bytes, now
from agentworld.records.file import input_errors, read_lines, write_whole
from agentworld.records.statements.genesis import GENESIS
from agentworld.runner.remote import WorkingCopySettings
from agentworld.storage.backups import (
    FILES,
    BackupStore,
    copies_of,
    copy_path,
    dump_path,
    text_path,
    write_list,
)
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld.storage.stores import Stores

_START = "start.txt"
_DUMP = re.compile(r"[a-z0-9_-]+\.dump")
_AT_ONCE = 8
_SUBMITTED = 1_000
_PUNCTUATION = re.compile(r"[-:]|\+.*")
_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class FinishedBackup(NamedTuple):
    """A complete backup."""

    name: str
    backup: Backup
    lost_copies: tuple[str, ...]
    """Copies of signed records that earlier backups have and the evidence mirror no longer has."""


class _Texts(NamedTuple):
    copied: set[Digest]
    """Texts that the destination has now."""
    damaged: set[Digest]
    """Texts that are damaged in the object store."""


class _Start(NamedTuple):
    at: str
    texts: set[Digest]
    """Long texts that were copied before the databases were dumped."""

    @property
    def name(self) -> str:
        """The backup's name; names sort by time."""
        return f"{_PUNCTUATION.sub('', self.at)}Z"


def begin_backup(destination: str, store: Path, work: Path) -> int:
    """Copies long texts, and lists them in `work`; returns their number.

    Raises Conflict if the destination has backups of another ledger, or `work` has dumps already.
    """
    if dumps := sorted(work.glob("*.dump")):
        raise Conflict(f"{dumps[0]} is of another backup; remove it, or use another folder")
    at, stores, backups = now(), Stores.of(store), BackupStore(destination)
    _check_ledger(backups, WriteOnce(stores.mirror_url))
    copied = sorted(_copy_texts(ObjectStore(stores.objects_url), backups).copied)
    write_whole(work / _START, "".join(f"{line}\n" for line in (at, *copied)).encode())
    return len(copied)


def finish_backup(destination: str, store: Path, work: Path, keep: int) -> FinishedBackup:
    """Copies the dumps in `work` and everything that belongs to them, and removes old backups.

    Raises InputError if no backup was begun or no database dumped, Conflict if this backup is
    complete already, and StoreError if another process finishes a backup at this destination.
    """
    start, dumps = _read_start(work), _find_dumps(work)
    stores, backups = Stores.of(store), BackupStore(destination)
    with backups.hold(from_environment(WorkingCopySettings).lease_seconds) as lease:
        _check_ledger(backups, WriteOnce(stores.mirror_url))
        if start.name in backups.names():
            raise Conflict(f"the backup {start.name} is complete already; begin another one")
        finished = _copy_all(start, dumps, stores, backups)
        lease.check()
        backups.put_manifest(start.name, finished.backup)
        backups.prune(keep)
    return finished


def _copy_all(
    start: _Start, dumps: Sequence[Path], stores: Stores, backups: BackupStore
) -> FinishedBackup:
    """Copies all files of a backup except its manifest; returns their list."""
    stored = {dump.name: backups.put_file(start.name, dump) for dump in dumps}
    copied, damaged = _copy_texts(ObjectStore(stores.objects_url), backups)
    copies, lost_copies = _copy_mirror(WriteOnce(stores.mirror_url), backups)
    texts = copied | start.texts
    _check_present(texts, backups)
    files = {text_path(digest): digest for digest in texts}
    files |= {copy_path(name): digest for name, digest in copies.items()}
    files |= {dump_path(start.name, name): file.content for name, file in stored.items()}
    list_file = dumps[0].with_name(FILES)
    write_list(files, list_file)
    backup = Backup(
        at=start.at,
        dumps=stored,
        files=backups.put_file(start.name, list_file),
        num_texts=len(texts),
        num_copies=len(copies),
        damaged=tuple(sorted(damaged - texts)),
    )
    return FinishedBackup(start.name, backup, lost_copies)


def _read_start(work: Path) -> _Start:
    path = work / _START
    with input_errors(path):
        if not path.is_file():
            raise InputError(f"no backup was begun in {work}; run `agentworld backup begin` first")
        at, *digests = (line.decode().strip() for line in read_lines(path))
    return _Start(at, set(digests))


def _find_dumps(work: Path) -> list[Path]:
    dumps = sorted(work.glob("*.dump"))
    if not dumps:
        raise InputError(f"{work} has no NAME.dump; dump the ledger's database there with pg_dump")
    for dump in dumps:
        if not _DUMP.fullmatch(dump.name):
            raise InputError(f"{dump.name!r} is not a dump's name; use a-z, 0-9, - and _")
    return dumps


def _check_ledger(backups: BackupStore, mirror: WriteOnce) -> None:
    """Raises Conflict if the destination has the genesis of another ledger."""
    own, other = _find(mirror, GENESIS), _find(backups.mirror, GENESIS)
    if own and other and own != other:
        raise Conflict(
            f"{backups.display_url} has backups of another ledger; name a destination of its own"
        )


def _copy_texts(objects: ObjectStore, backups: BackupStore) -> _Texts:
    """Copies the texts that the destination lacks; skips a text that is erased meanwhile."""
    present, digests = set(backups.texts.digests()), objects.digests()
    missing = [digest for digest in digests if digest not in present]
    states = dict(zip(missing, _run_all(_text_copier(objects, backups), missing), strict=True))
    erased = {digest for digest, state in states.items() if state == "erased"}
    damaged = {digest for digest, state in states.items() if state == "damaged"}
    return _Texts(set(digests) - erased - damaged, damaged)


def _text_copier(objects: ObjectStore, backups: BackupStore) -> Callable[[Digest], str]:
    def copy(digest: Digest) -> str:
        try:
            data = objects.get(digest)
        except NotFound:
            return "erased"
        except StoreError as error:
            if error.retryable:
                raise
            return "damaged"
        backups.texts.put(data)
        backups.texts.get(digest)  # raises if the text does not match its digest
        return "copied"

    return copy


def _copy_mirror(
    mirror: WriteOnce, backups: BackupStore
) -> tuple[Mapping[str, Digest], tuple[str, ...]]:
    """Copies what the destination lacks; returns all that it has, and what the mirror lost."""
    present, source = set(backups.mirror.names()), set(mirror.names())
    older = {
        name: digest
        for name, digest in _newest_copies(backups).items()
        if name in present or name not in source
    }
    missing = sorted(source - older.keys())

    def copy(name: str) -> Digest:
        data = mirror.get(name)
        backups.mirror.put(name, data)
        return _digest_copy(name, backups, data)

    copied = dict(zip(missing, _run_all(copy, missing), strict=True))
    return {**older, **copied}, tuple(sorted(older.keys() - source))


def _newest_copies(backups: BackupStore) -> Mapping[str, Digest]:
    """The copies in the newest backup with an undamaged list."""
    for name in reversed(backups.names()):
        try:
            return copies_of(backups.files(name))
        except (NotFound, StoreError) as error:
            if error.retryable:
                raise
            _log.warning("%s", error)
    return {}


def _digest_copy(name: str, backups: BackupStore, data: bytes) -> Digest:
    if backups.mirror.get(name) != data:
        raise StoreError(
            f"{name} in {backups.display_url} differs from what was written; check that disk or"
            " bucket"
        )
    return digest_bytes(data)


def _check_present(texts: set[Digest], backups: BackupStore) -> None:
    """Raises StoreError if another backup removed texts that `begin` copied or found there."""
    missing = texts.difference(backups.texts.digests())
    if missing:
        raise StoreError(
            f"{len(missing)} texts, such as {min(missing)}, are gone from {backups.display_url};"
            " another backup ran at the same time, so begin this one again"
        )


def _find(store: WriteOnce, name: str) -> bytes | None:
    try:
        return store.get(name)
    except NotFound:
        return None


def _run_all(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Results in order. A pool keeps all queued items in memory, so few are queued at a time."""
    results: list[_Result] = []
    remaining = iter(items)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while part := list(islice(remaining, _SUBMITTED)):
            results += pool.map(work, part)
    return results

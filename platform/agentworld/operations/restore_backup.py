"""Verifies a backup, and restores its files."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import Conflict, NotFound, StoreError
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.storage.backups import BackupStore, copies_of, dump_path, texts_of
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld.storage.stores import Stores


class RestoredBackup(NamedTuple):
    """The result of a restore."""

    dumps: tuple[Path, ...]
    """The dumps, for `pg_restore`."""
    num_texts: int
    """Long texts that were missing or damaged in the object store."""
    num_copies: int
    """Copies of signed records that were missing in the evidence mirror."""
    other_copies: tuple[str, ...]
    """Copies that differ from those of the evidence mirror, which stay unchanged."""


def verify_backup(
    destination: str, name: str, on_progress: OnProgress = ignore_progress
) -> list[str]:
    """A sentence for each missing or damaged file; raises NotFound if there is no such backup."""
    backups = BackupStore(destination)
    return list(_problems(backups, backups.files(name), on_progress))


def newest_backup(destination: str) -> str:
    """The name of the newest complete backup; raises NotFound if there is none."""
    backups = BackupStore(destination)
    names = backups.names()
    if not names:
        raise NotFound(f"{backups.display_url} has no backup; check the address")
    return names[-1]


def restore_backup(destination: str, name: str, store: Path, work: Path) -> RestoredBackup:
    """Writes the dumps into `work`, and restores missing texts and copies.

    Existing files stay unchanged, except damaged texts. Raises StoreError for a damaged backup.
    """
    backups, stores = BackupStore(destination), Stores.of(store)
    files = backups.files(name)
    dumps = tuple(_download(backups, name, work))
    copies = _restore_copies(copies_of(files), backups, WriteOnce(stores.mirror_url))
    num_texts = _restore_texts(texts_of(files), backups, ObjectStore(stores.objects_url))
    return RestoredBackup(dumps, num_texts, *copies)


def _problems(
    backups: BackupStore, files: dict[str, Digest], on_progress: OnProgress
) -> Iterator[str]:
    for done, (path, digest) in enumerate(files.items(), 1):
        try:
            if backups.digest_of(path) != digest:
                yield f"{path} is damaged"
        except NotFound:
            yield f"{path} is missing"
        on_progress(done, len(files))


def _download(backups: BackupStore, name: str, work: Path) -> Iterator[Path]:
    for dump, file in backups.read(name).dumps.items():
        backups.download(dump_path(name, dump), file.content, work / dump)
        yield work / dump


def _restore_copies(
    copies: dict[str, Digest], backups: BackupStore, mirror: WriteOnce
) -> tuple[int, tuple[str, ...]]:
    present, num_copies, others = set(mirror.names()), 0, []
    for name, digest in copies.items():
        data = backups.mirror.get(name)
        if digest_bytes(data) != digest:
            raise StoreError(
                f"the copy {name} in {backups.display_url} is damaged; use another backup",
                retryable=False,
            )
        try:
            mirror.put(name, data)
        except Conflict:
            others.append(name)
        num_copies += name not in present
    return num_copies, tuple(others)


def _restore_texts(texts: set[Digest], backups: BackupStore, objects: ObjectStore) -> int:
    num_texts = 0
    for digest in texts:
        try:
            objects.get(digest)
        except (NotFound, StoreError) as error:
            if isinstance(error, StoreError) and error.retryable:
                raise
            objects.put(backups.texts.get(digest))
            num_texts += 1
    return num_texts

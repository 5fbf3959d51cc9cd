"""A model's folder that several pods share: the first pod fetches and verifies it for all.

    NAME/           the model's files
    NAME.json       the size and the time of change of each; it is written when all are verified
    NAME.lock       held by a pod that fetches; others wait for it

A file whose size or time of change differs is hashed again. Only this program may write here: any
other writer could exchange a file together with its record.
"""

import fcntl
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import ArtifactManifest, model_files
from agentworld.records.file import sync
from agentworld.storage.fetch import fetch_files
from agentworld.storage.folder import translate_errors

_log = logging.getLogger(__name__)

Work = Literal["fetched", "hashed", "unchanged"]
"""The work that was done: everything, or no fetch, or neither fetch nor hash."""


class _VerifiedFiles(Record):
    """The state of the files when they were verified."""

    artifact: Digest
    files: dict[str, tuple[int, int]]
    """The size in bytes, and the time of change in nanoseconds (`st_ctime_ns`), which a program
    cannot set.
    """


def share_model(url: str, artifact: ArtifactManifest, folder: Path) -> Work:
    """Makes the folder contain exactly these files, fetching missing ones from `url`.

    Raises InputError naming a file that differs at `url`, NotFound and StoreError.
    """
    mark = folder.with_name(f"{folder.name}.json")
    with _lock(folder.with_name(f"{folder.name}.lock")), translate_errors(str(folder)):
        if _is_marked(mark, artifact, folder):
            return "unchanged"
        work: Work = "hashed"
        if not (mark.is_file() and _is_whole(artifact, folder)):
            mark.unlink(missing_ok=True)
            _fetch(url, artifact, folder)
            work = "fetched"
        _describe(artifact, folder).write(mark)
        return work


def _is_marked(mark: Path, artifact: ArtifactManifest, folder: Path) -> bool:
    try:
        return _VerifiedFiles.read(mark) == _describe(artifact, folder)
    except InputError:  # no mark, or no folder
        return False


def _is_whole(artifact: ArtifactManifest, folder: Path) -> bool:
    try:
        artifact.verify(folder)
    except InputError:
        return False
    return True


def _fetch(url: str, artifact: ArtifactManifest, folder: Path) -> None:
    """Removes partial files on failure, because other models need the space."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        fetch_files(url, artifact.files, folder)
        if model_files(folder).keys() != artifact.files.keys():
            raise InputError(
                f"the files in {folder} are not those of the manifest; remove that folder, or pin"
                " again"
            )
        for path in (*model_files(folder).values(), folder):
            sync(path)  # otherwise a power failure could keep the mark but lose the file
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _describe(artifact: ArtifactManifest, folder: Path) -> _VerifiedFiles:
    files = {name: _stamp(path) for name, path in model_files(folder).items()}
    return _VerifiedFiles(artifact=artifact.digest, files=files)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_ctime_ns


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with translate_errors(str(path.parent)):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        with translate_errors(str(path.parent)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _log.warning("waiting for a pod that fetches the same model; it holds %s", path)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield

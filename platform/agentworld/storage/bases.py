"""The base models of a store: each is fetched once, and kept under the digest of all its files.

    bases/HEX/model/            the files
    bases/HEX/manifest.json     their digests: HEX is what `sha256sum` says of it
    bases/addresses/HEX.json    the digest that an address stands for, and its stamp
    bases/partial/HEX/          what a killed fetch goes on from
    bases/partial/HEX.draft/    a folder that is renamed when it is whole

The address is asked each time whether it still holds the same; what was fetched is verified before
it is trained. Hidden files and drafts are not part of a base: a bucket's store does not keep them.
"""

import fcntl
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from agentworld.errors import InputError, StoreError
from agentworld.records.base import Digest, Record, digest_json
from agentworld.records.checkpoint import ArtifactManifest, model_files
from agentworld.storage.folder import Disk
from agentworld.storage.working_copy import copy_of, is_draft

_MANIFEST = "manifest.json"
_MODEL = "model"
_log = logging.getLogger(__name__)


class BaseSource(Protocol):
    """Where a base model is fetched from."""

    @property
    def address(self) -> str:
        """As a recipe writes it, without what is secret."""
        ...

    def stamp(self) -> str:
        """Changes when the files at the address change; costs at most one request."""
        ...

    def fetch(self, folder: Path) -> None:
        """Downloads the files that are missing or incomplete."""
        ...


class FetchedBase(Record):
    """The digest of an address at its last fetch."""

    address: str
    stamp: str
    artifact: Digest


class BaseStore:
    """The base models in a job's store. If several processes need one, one fetches it and the
    others wait.
    """

    def __init__(self, store: Path) -> None:
        self._root = store / "bases"

    def digest_of(self, source: BaseSource) -> Digest:
        """The digest over all files of a base, which is fetched if it is missing."""
        stamp = source.stamp()
        with self._lock(source.address):
            before = self._find_fetched(source.address)
            if before and before.stamp == stamp and self._is_here(before.artifact):
                return before.artifact
            digest = self._fetch(source, stamp)
            if before and before.artifact != digest:
                _log.warning("%s was %s, and is %s now", source.address, before.artifact, digest)
            base = FetchedBase(address=source.address, stamp=stamp, artifact=digest)
            path = self._record_of(source.address)
            base.write(path)
            _put(path)
        return digest

    def folder_of(self, digest: Digest) -> Path:
        """The files of a fetched base; raises StoreError if they have changed."""
        folder = self._root / _hex(digest)
        _download(folder)
        try:
            ArtifactManifest.read(folder / _MANIFEST).verify(folder / _MODEL)
        except InputError as error:
            raise StoreError(
                f"the base model in {folder} is not as it was fetched ({error}); delete that"
                " folder, and it is fetched again",
                retryable=False,
            ) from error
        return folder / _MODEL

    def _fetch(self, source: BaseSource, stamp: str) -> Digest:
        # A partial fetch with another stamp is not resumed: its files may differ.
        partial = self._root / "partial" / _hex(digest_json([source.address, stamp]))
        partial.mkdir(parents=True, exist_ok=True)
        source.fetch(partial)
        if source.stamp() != stamp:
            raise StoreError(
                f"{source.address} changed during the fetch; repeat it when no other process"
                " writes there",
                retryable=True,
            )
        for name, path in model_files(partial).items():
            if is_draft(Path(name)):
                path.unlink()
        manifest = ArtifactManifest.of(partial)
        self._keep(partial, manifest)
        shutil.rmtree(partial)
        return manifest.digest

    def _keep(self, partial: Path, manifest: ArtifactManifest) -> None:
        """Moves the files to their digest's folder; a complete one there may be in use."""
        folder = self._root / _hex(manifest.digest)
        with self._lock(manifest.digest):
            is_whole = self._is_whole(manifest)
            if not is_whole:
                draft = partial.with_suffix(".draft")
                _build(draft, partial, manifest)
                shutil.rmtree(folder, ignore_errors=True)
                draft.rename(folder)
            copy = copy_of(folder)
            if copy and not (is_whole and copy.has(folder / _MANIFEST)):
                copy.put(folder)

    def _is_whole(self, manifest: ArtifactManifest) -> bool:
        try:
            self.folder_of(manifest.digest)
        except StoreError:
            return False
        return True

    def _is_here(self, digest: Digest) -> bool:
        manifest = self._root / _hex(digest) / _MANIFEST
        _download(manifest)
        return manifest.is_file()

    def _find_fetched(self, address: str) -> FetchedBase | None:
        path = self._record_of(address)
        _download(path)
        return FetchedBase.read(path) if path.is_file() else None

    def _record_of(self, address: str) -> Path:
        return self._root / "addresses" / f"{_hex(digest_json(address))}.json"

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        """A lock for an address or a digest. To hold both, a process locks the address first."""
        lock = self._record_of(name).with_suffix(".lock")
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def path_in(folder: Path, name: str, address: str) -> Path:
    """The path of a file; raises InputError if it is outside of the folder."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{address} has a file {name!r} outside its folder; remove it")
    return path


def _build(draft: Path, partial: Path, manifest: ArtifactManifest) -> None:
    shutil.rmtree(draft, ignore_errors=True)
    for name in manifest.files:
        path = draft / _MODEL / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (partial / name).rename(path)
    Disk(draft).write(_MANIFEST, manifest.canonical)


def _hex(digest: Digest) -> str:
    return digest.removeprefix("sha256:")


def _download(path: Path) -> None:
    """Downloads the path from the store's bucket, if the store is in one."""
    if copy := copy_of(path):
        copy.download(path)


def _put(path: Path) -> None:
    if copy := copy_of(path):
        copy.put(path)

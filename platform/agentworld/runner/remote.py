"""Runs steps on a store in a bucket: each step works on a local copy, and uploads its results.

The records, which are small, are downloaded before a step; the files that it reads are downloaded
only when it has work to do. While it works, its checkpoints are uploaded.
"""

import inspect
import logging
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import StoreError
from agentworld.recipes.environment import from_environment
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, TRUSTED, put_signer
from agentworld.storage.lease import Lease
from agentworld.storage.working_copy import WorkingCopy, copy_of, is_bucket, open_copy
from agentworld.train.resume import CHECKPOINTS, sealed_checkpoints

_log = logging.getLogger(__name__)

_KEYS = "keys"
_RECORDS = re.compile(
    r"steps/[^/]+/[^/]+/[^/]+\.json|simulators/[^/]+/(reports/)?[^/]+\.json"
    rf"|{_KEYS}/[^/]+/{TRUSTED}/[^/]+\.pem|(progress|jobs)/[^/]+\.json"
)
_OF_RECORDS = ("steps", "simulators", _KEYS, "progress", "jobs")
_AT_THE_END = ("model", "checkpoint.json", CHECKPOINTS)

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class WorkingCopySettings(BaseSettings):
    """Set by AGENTWORLD_SCRATCH and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    scratch: Path = Path(tempfile.gettempdir()) / "agentworld"
    """The folder for working copies, with room for what a step reads and writes."""
    keep_seconds: float = Field(10.0, gt=0)
    """How often a running step uploads what it wrote."""
    lease_seconds: float = Field(60.0, gt=0)
    """A step without a sign of life for this long counts as killed."""
    step_key: SecretStr = SecretStr("")
    """The private key that signs trained weights, as PEM, for a store in a bucket."""
    simulator_key: SecretStr = SecretStr("")
    """The private key that signs the logs of simulators that a step serves, as PEM."""


def on_store(step: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """Lets a step's `store` be a URL; its folders and its result are then URLs in it."""
    signature = inspect.signature(step)

    @wraps(step)
    def run_on_store(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Answer:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        store = bound.arguments["store"]
        copy = _open_copy(store) if is_bucket(store) else copy_of(Path(store))
        if copy is None:
            return step(*arguments, **options)
        _refresh(copy)
        paths = {name: _to_local(copy, value) for name, value in bound.arguments.items()}
        bound.arguments.update(paths)
        answer = step(*bound.args, **bound.kwargs)
        return _to_remote(copy, answer) if is_bucket(store) else answer

    return run_on_store


def local_store(store: str) -> Path:
    """The folder of a store, or of the working copy of a store in a bucket, with its records."""
    if not is_bucket(store):
        return Path(store)
    copy = _open_copy(store)
    _refresh(copy)
    return copy.root


def local_path(name: str, store: str) -> str:
    """The local path of a URL in a store's bucket; downloads a file. Other values are unchanged."""
    return str(_to_local(_open_copy(store), name)) if is_bucket(store) else name


def fetch(path: Path) -> Path:
    """The same path; if it is in a working copy, the bucket's files are downloaded first."""
    if copy := copy_of(path):
        copy.download(path)
    return path


def keep(path: Path) -> None:
    """Uploads a file or a folder now, so that other pods see it; raises StoreError."""
    if copy := copy_of(path):
        copy.put(path)


def is_kept(path: Path) -> bool:
    """Whether a file exists, in the bucket too if it belongs there: a process may have been killed
    before the upload, or people may have deleted it since.
    """
    copy = copy_of(path)
    if copy:
        copy.download(path)
    return path.exists() and (copy is None or copy.has(path))


def fetch_all(folder: Path, *reads: Path) -> None:
    """Downloads the existing part of a step's own folder, and the folders that it reads."""
    if copy := copy_of(folder):
        copy.download(*reads, folder)


@contextmanager
def hold_lease(folder: Path, busy: str) -> Iterator[Lease | None]:
    """Holds the lease of a step's folder, if it is a copy of a folder in a bucket.

    Raises StoreError if another machine holds it.
    """
    if copy := copy_of(folder):
        seconds = from_environment(WorkingCopySettings).lease_seconds
        lease = Lease(copy.to_address(f"{folder}.lease"), busy, seconds)
        with lease.hold():
            yield lease
    else:
        yield None


@contextmanager
def sync_while(
    folder: Path, progress: Path, lease: Lease | None, reads: Sequence[Path] = ()
) -> Iterator[None]:
    """Downloads a step's inputs, uploads its folder at intervals, and once more at the end.

    Raises StoreError if another machine has taken over the folder.
    """
    copy = copy_of(folder)
    if copy is None or lease is None:
        yield
        return
    fetch_all(folder, *reads)
    with _CheckpointSync(
        copy, lease, folder, progress, from_environment(WorkingCopySettings).keep_seconds
    ):
        yield
    lease.check()
    copy.put(folder)
    lease.check()


def prune(folder: Path) -> None:
    """Deletes from the bucket what a folder no longer has, as a finished step's checkpoints."""
    if copy := copy_of(folder):
        copy.prune(folder)


class _CheckpointSync:
    """A thread that uploads the files from which a killed step can resume."""

    def __init__(
        self, copy: WorkingCopy, lease: Lease, folder: Path, progress: Path, seconds: float
    ) -> None:
        self._copy = copy
        self._lease = lease
        self._folder = folder
        self._progress = progress
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._round()

    def _work(self) -> None:
        while not self._ended.wait(self._seconds):
            self._round()

    def _round(self) -> None:
        """Uploads once. A failure is ignored: the next round retries, and without a bucket the step
        fails at its end.
        """
        try:
            self._lease.check()
            self._copy.put(self._progress, *_resumable(self._folder))
            if (self._folder / CHECKPOINTS).is_dir():
                self._copy.prune(self._folder / CHECKPOINTS)
        except StoreError as error:
            _log.warning("%s; trying again", error)


def _resumable(folder: Path) -> list[Path]:
    """The files of a step's folder without results that are complete only at the end, the receipt,
    and checkpoints that are being written.
    """
    entries = [path for path in folder.iterdir() if path.name not in _AT_THE_END]
    paths = [path for path in entries if not (path / CHECKPOINTS).is_dir()]
    return [*paths, *sealed_checkpoints(folder / CHECKPOINTS)]


def _open_copy(store: str) -> WorkingCopy:
    settings = from_environment(WorkingCopySettings)
    copy = open_copy(store, settings.scratch)
    for name, key in ((STEP_KEYS, settings.step_key), (SIMULATOR_KEYS, settings.simulator_key)):
        if pem := key.get_secret_value():
            put_signer(copy.root / _KEYS / name, pem)
    return copy


def _refresh(copy: WorkingCopy) -> None:
    """Downloads the current records."""
    copy.download(*(copy.root / name for name in _OF_RECORDS), only=_RECORDS)


def _to_local(copy: WorkingCopy, value: object) -> object:
    """Downloads a file in the bucket, such as a recipe."""
    if type(value) is tuple:  # an argument, not a record
        return tuple(_to_local(copy, item) for item in value)
    if not isinstance(value, str) or copy.to_path(value) == value:
        return value
    path = Path(copy.to_path(value))
    if path.suffix:
        copy.download(path)
    return str(path)


def _to_remote(copy: WorkingCopy, answer: _Answer) -> _Answer:
    """Maps a step's result to URLs: a folder, or several values some of which are folders."""
    if isinstance(answer, str):
        return type(answer)(copy.to_address(answer))
    if isinstance(answer, tuple) and hasattr(answer, "_make"):
        return cast("_Answer", answer._make(_to_remote(copy, item) for item in answer))
    return answer

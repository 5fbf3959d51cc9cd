"""Runs a step once for its recipe, its inputs and its code; then its folder is reused.

The receipt is written last, and then the checkpoints are removed. A folder without a receipt was
left by a killed run, and the work continues in it from its checkpoints.
"""

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.records.base import Digest, Record, digest_json
from agentworld.records.progress import ignore_progress
from agentworld.records.step import StepReceipt
from agentworld.runner.code import code_digest
from agentworld.runner.failure import sentence_of, translate_errors
from agentworld.runner.lock import hold
from agentworld.runner.progress import ProgressFile, progress_path
from agentworld.runner.remote import fetch_all, hold_lease, is_kept, keep, prune, sync_while
from agentworld.runner.task import Work
from agentworld.runner.watch import Watch
from agentworld.storage.lease import Lease
from agentworld.storage.receipts import RECEIPT, read_receipt
from agentworld.train.resume import CHECKPOINTS

DRIVER_LOCK = "driver.lock"
_FOLDER_DIGITS = 16
_PATIENCE_SECONDS = 5.0  # a step whose driver was killed needs a moment to notice


def run_step(
    store: Path,
    step: str,
    recipe: Sequence[Record],
    inputs: dict[str, Digest],
    work: Work,
    *,
    check: Callable[[], None] | None = None,
    reads: Sequence[Path] = (),
    domains: Collection[str] = (),
) -> Path:
    """The folder of the finished step, new or reused.

    `reads` are the folders whose files the work needs, not only their records. `domains` are those
    whose code it runs. `check` raises an error if the work cannot be done here, before anything is
    started and without disturbing another process that works on it.
    """
    key_fields = _key_fields_of(step, recipe, inputs, domains)
    key = digest_json(key_fields)
    folder = _folder(store, step, key)
    ranks = from_environment(Ranks)
    progress = ProgressFile(store, step, num_processes=ranks.world_size)
    if not ranks.is_first:
        with _report_failure(progress, store):
            return _work_along(folder, work, reads)
    receipt = folder / RECEIPT
    with _report_failure(progress, store):
        progress.begin()
        if _is_reused(folder, progress):
            return folder
        if check:
            check()
        start = time.monotonic()
        with _exclusive_lease(folder, step) as lease:
            if _is_reused(folder, progress):  # the process that it waited for finished it
                return folder
            receipt.unlink(missing_ok=True)
            progress_file = progress_path(store, step)
            with (
                Watch(store / DRIVER_LOCK) as watch,
                sync_while(folder, progress_file, lease, reads),
            ):
                output = work(folder, progress.update)
            seconds = time.monotonic() - start
            StepReceipt(
                **key_fields,
                key=key,
                output=output,
                seconds=seconds,
                peak_memory_gib=watch.peak_memory_gib,
            ).write(receipt)
            keep(receipt)
            _remove_checkpoints(folder)
            prune(folder)
        progress.finish("finished", folder, seconds)
    return folder


def folder_of(
    store: Path,
    step: str,
    recipe: Sequence[Record],
    inputs: dict[str, Digest],
    *,
    domains: Collection[str] = (),
) -> Path:
    """The folder that `run_step` fills, finished or not."""
    return _folder(store, step, digest_json(_key_fields_of(step, recipe, inputs, domains)))


def _is_reused(folder: Path, progress: ProgressFile) -> bool:
    if not is_kept(folder / RECEIPT):
        return False
    _remove_checkpoints(folder)  # a run that was killed just after its receipt left them
    progress.finish("reused", folder, read_receipt(folder).seconds)
    return True


def _remove_checkpoints(folder: Path) -> None:
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def _work_along(folder: Path, work: Work, reads: Sequence[Path]) -> Path:
    """The part of all processes except the first, if several run a step together."""
    if not (folder / RECEIPT).exists():
        folder.mkdir(parents=True, exist_ok=True)
        fetch_all(folder, *reads)
        work(folder, ignore_progress)
    return folder


def output_of(folder: str) -> Digest:
    """The digest of a finished step's result; raises InputError if it is not finished."""
    return read_receipt(Path(folder)).output


class _KeyFields(TypedDict):
    step: str
    recipe: Digest
    inputs: dict[str, Digest]
    code: Digest


def _key_fields_of(
    step: str, recipe: Sequence[Record], inputs: dict[str, Digest], domains: Collection[str]
) -> _KeyFields:
    parts = digest_json([part.model_dump(mode="json") for part in recipe])
    code = code_digest(step, tuple(sorted(set(domains))))
    return {"step": step, "recipe": parts, "inputs": inputs, "code": code}


def _folder(store: Path, step: str, key: Digest) -> Path:
    return store / "steps" / step / key.removeprefix("sha256:")[:_FOLDER_DIGITS]


@contextmanager
def _exclusive_lease(folder: Path, step: str) -> Iterator[Lease | None]:
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"another process works on {step} in {folder}; wait for it, or end it"
    lock = folder.with_name(folder.name + ".lock")
    with hold(lock, busy, patience_seconds=_PATIENCE_SECONDS), hold_lease(folder, busy) as lease:
        yield lease


@contextmanager
def _report_failure(progress: ProgressFile, store: Path) -> Iterator[None]:
    try:
        with translate_errors(store):
            yield
    except Exception as error:
        progress.fail(type(error).__name__, sentence_of(error))
        raise

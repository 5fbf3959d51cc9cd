"""Turns any error into one sentence: the problem, the value, and the correction."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.errors import AgentworldError, StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FREE_BYTES = 64 << 10  # too little for any step's result


class StepFailed(Exception):
    """A step in another process failed; `kind` is the name of its error's class."""

    def __init__(self, step: str, kind: str, sentence: str) -> None:
        super().__init__(f"{step} stopped: {sentence}" if step else sentence)
        self.kind = kind


def translate(error: Exception, store: Path) -> Exception:
    """The error to report: a full disk is the cause of many other errors."""
    if is_full(store) or _reports_full_disk(error):
        return StoreError(full_sentence(store))
    return error


@contextmanager
def translate_errors(store: Path) -> Iterator[None]:
    """Raises the block's errors after `translate`."""
    try:
        yield
    except Exception as error:
        translation = translate(error, store)
        if translation is error:
            raise
        raise translation from error


def sentence_of(error: Exception) -> str:
    """The sentence for a user; an unexpected error gets its type's name."""
    message = " ".join(str(error).split())[:300] or "no words"
    return message if isinstance(error, AgentworldError) else f"{type(error).__name__}: {message}"


def full_sentence(store: Path) -> str:
    """The sentence for a full disk."""
    return f"the disk that holds {store} is full; free space and run it again, what is done is kept"


def is_full(store: Path) -> bool:
    """Whether the disk of a folder is full, or nearly so."""
    nearest = next((path for path in (store, *store.absolute().parents) if path.exists()), store)
    return shutil.disk_usage(nearest).free < _FREE_BYTES


def _reports_full_disk(error: BaseException | None) -> bool:
    """Libraries in other languages report a full disk only in their message."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if "No space left on device" in str(error) or "disk is full" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False

"""The files of an SQLite database, before SQLite opens them: it waits for ever on a pipe."""

from pathlib import Path

from agentworld.errors import StoreError
from agentworld.records.file import check_regular

_BESIDE = ("", "-journal", "-wal", "-shm")


def check_sqlite(path: Path) -> None:
    """Raises StoreError where the database, or a file beside it, is no regular file."""
    try:
        check_regular(*(path.with_name(path.name + end) for end in _BESIDE))
    except OSError as error:
        raise StoreError(
            f"the database {path} cannot be opened: of {error.filename}, {error.strerror}; take it"
            " away, or restore it",
            retryable=False,
        ) from error

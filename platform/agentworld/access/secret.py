"""A file with a secret of our own: made once, for its owner alone, the same for all replicas."""

import contextlib
import os
import secrets
from pathlib import Path

from agentworld.errors import InputError, NotFound
from agentworld.storage.disk import sync_folder
from agentworld.storage.private import read_private

RUN_TOKENS = "run-tokens"
"""The file with the secret of the runs' tokens, in a folder of all keys."""

_NUM_BYTES = 32


def ensure_secret(path: Path) -> bytes:
    """The secret, made now where there is none; of several that make one, one wins.

    Raises InputError for a file that is open to others, or that holds no secret of ours.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        try:
            _write(draft, new_secret())
            # A link is made whole or not at all, and never in place of another's.
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)
    return read_secret(path)


def new_secret() -> bytes:
    """What such a file holds, made now."""
    return secrets.token_bytes(_NUM_BYTES)


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)


def read_secret(path: Path) -> bytes:
    """The secret; raises NotFound where there is none, and InputError as `ensure_secret` does."""
    try:
        data = read_private(path)
    except FileNotFoundError as error:
        raise NotFound(f"there is no secret {path}; make one, or name its folder") from error
    if len(data) != _NUM_BYTES:
        raise InputError(f"{path} holds {len(data)} bytes and no secret of {_NUM_BYTES}; remove it")
    return data

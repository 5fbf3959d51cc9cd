"""A file with a secret of our own: made once, for its owner alone, the same for all replicas."""

import contextlib
import os
import secrets
from pathlib import Path

from agentworld.errors import InputError, NotFound
from agentworld.records.file import draft
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
        # A link is made whole or not at all, and never in place of another's.
        with draft(path, new_secret(), 0o600) as file, contextlib.suppress(FileExistsError):
            os.link(file, path)
    return read_secret(path)


def new_secret() -> bytes:
    """What such a file holds, made now."""
    return secrets.token_bytes(_NUM_BYTES)


def read_secret(path: Path) -> bytes:
    """The secret; raises NotFound where there is none, and InputError as `ensure_secret` does."""
    try:
        data = read_private(path)
    except FileNotFoundError as error:
        raise NotFound(f"there is no secret {path}; make one, or name its folder") from error
    if len(data) != _NUM_BYTES:
        raise InputError(f"{path} holds {len(data)} bytes and no secret of {_NUM_BYTES}; remove it")
    return data

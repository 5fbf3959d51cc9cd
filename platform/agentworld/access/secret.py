"""A file with the service's own secret: created once, private, and shared by all replicas."""

import contextlib
import os
import secrets
from pathlib import Path

from agentworld.errors import InputError, NotFound
from agentworld.records.file import draft
from agentworld.storage.private import read_private

RUN_TOKENS = "run-tokens"
"""The name of the file with the secret of run tokens, in the folder of keys."""

_NUM_BYTES = 32


def ensure_secret(path: Path) -> bytes:
    """Reads the secret, and creates it if it is missing; concurrent calls agree on one.

    Raises InputError if others can read the file, or if it has no valid secret.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # os.link is atomic and does not overwrite an existing file
        with draft(path, new_secret(), 0o600) as file, contextlib.suppress(FileExistsError):
            os.link(file, path)
    return read_secret(path)


def new_secret() -> bytes:
    """A new secret in the form of the file."""
    return secrets.token_bytes(_NUM_BYTES)


def read_secret(path: Path) -> bytes:
    """The secret; raises NotFound if there is none, otherwise as `ensure_secret`."""
    try:
        data = read_private(path)
    except FileNotFoundError as error:
        raise NotFound(f"there is no secret {path}; make one, or name its folder") from error
    if len(data) != _NUM_BYTES:
        raise InputError(
            f"{path} has {len(data)} bytes, a secret has {_NUM_BYTES}; remove the file"
        )
    return data

"""A store's keys: the trusted ones and the signing key, and their rotation."""

from pathlib import Path

from agentworld.records.base import Record
from agentworld.runner.remote import keep
from agentworld.signing.keys import (
    SIGNER,
    STEP_KEYS,
    TRUSTED,
    Signer,
    TrustedKeys,
    current_key,
    ensure_signer,
    load_trusted,
    rotate,
)
from agentworld.storage.stores import Stores
from agentworld.storage.working_copy import copy_of


class StoredKey(Record):
    """A key by its id; an earlier signing key still verifies its signatures."""

    key: str
    signs: bool


def keys_of(store: Path, owner: str) -> list[StoredKey]:
    """Every trusted key; raises NotFound if there is none."""
    folder = _folder(store, owner)
    current = current_key(folder)
    return [StoredKey(key=key, signs=key == current) for key in load_trusted(folder)]


def rotate_key(store: Path, owner: str) -> StoredKey:
    """Makes a new signing key; raises NotFound if there is no key yet."""
    return StoredKey(key=rotate(_folder(store, owner)).public_key.keyid, signs=True)


def trusted_steps(store: Path) -> TrustedKeys:
    """The keys of the steps; none if no step ever signed."""
    folder = _folder(store, STEP_KEYS)
    return load_trusted(folder) if folder.is_dir() else {}


def step_signer(store: Path) -> Signer:
    """The signing key of the steps that write weights; created if it is missing.

    Raises InputError in a working copy of a bucket without a configured key.
    """
    keys = _folder(store, STEP_KEYS)
    signer = ensure_signer(keys)
    keep(keys / TRUSTED)
    return signer


def registering_signer(store: Path) -> Signer | None:
    """The same; null in a working copy without a configured key, where versions are unsigned."""
    if copy_of(store.resolve()) and not (_folder(store, STEP_KEYS) / SIGNER).exists():
        return None
    return step_signer(store)


def _folder(store: Path, owner: str) -> Path:
    return Stores.keys_of(store) / owner

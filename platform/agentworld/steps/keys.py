"""A store's keys: those that are trusted, the one that signs, and a new one in its place."""

from pathlib import Path

from agentworld.evidence.keys import current_key, load_trusted, rotate
from agentworld.records.base import Record
from agentworld.simulate.stores import Stores


class StoredKey(Record):
    """A key by its id; one that signs no more still verifies what it signed."""

    key: str
    signs: bool


def keys_of(store: Path, whose: str) -> list[StoredKey]:
    """Every key that is trusted; raises NotFound where there is none."""
    folder = _folder(store, whose)
    current = current_key(folder)
    return [StoredKey(key=key, signs=key == current) for key in load_trusted(folder)]


def rotate_key(store: Path, whose: str) -> StoredKey:
    """The new signer; raises NotFound where nobody ever signed."""
    return StoredKey(key=rotate(_folder(store, whose)).public_key.keyid, signs=True)


def _folder(store: Path, whose: str) -> Path:
    return Stores.of(store).keys / whose

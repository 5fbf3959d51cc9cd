"""Opens a store's ledger and the evidence for its records: its keys and the evidence mirror."""

from pathlib import Path

from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.client.credential import ClientSettings
from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.operations.registry import check_store, open_registry
from agentworld.records.base import Digest, Record, digest_json
from agentworld.records.garbled import redact
from agentworld.runner.remote import keep
from agentworld.signing.keys import (
    SIGNER,
    SIMULATOR_KEYS,
    STEP_KEYS,
    TRUSTED,
    Signer,
    TrustedKeys,
    current_key,
    ensure_signer,
    load_trusted,
    rotate,
)
from agentworld.statements.mounted_keys import read_trusted_keys
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld.storage.stores import Stores
from agentworld.storage.working_copy import copy_of

_SQLITE = "sqlite:///"


class StoredKey(Record):
    """A key by its id; an earlier signing key still verifies its signatures."""

    key: str
    signs: bool


def open_ledger(store: Path) -> Ledger:
    """The ledger that a store's simulators write; a new one if it does not exist."""
    stores = Stores.of(store)
    return Ledger(stores.ledger_url, ObjectStore(stores.objects_url))


def existing_ledger(store: Path) -> Ledger:
    """The ledger of a store; raises NotFound instead of creating a new one."""
    url = Stores.of(store).ledger_url
    file = Path(url.removeprefix(_SQLITE))
    if url.startswith(_SQLITE) and not file.is_file():
        raise NotFound(
            f"{file.parent} holds no {file.name}; serve a simulator there, or name another store"
        )
    return open_ledger(store)


def ledger_digest() -> Digest:
    """Identifies the ledger, because records of one ledger are not in another.

    A service's address identifies its ledger, whether or not the auditor has set the ledger's.
    """
    service = ClientSettings().service_url
    return digest_json(
        redact(service or Stores.from_environment().get("ledger_url") or "the store's own")
    )


def has_keys(store: Path, ledger: Ledger | None = None) -> bool:
    """Whether a simulator ever signed in this store; `ledger` is the store's, if it is open."""
    own = Stores.of(store).keys / SIMULATOR_KEYS
    return own.is_dir() or bool((ledger or open_ledger(store)).signing_keys.all())


def trusted_services(store: Path, ledger: Ledger | None = None) -> TrustedKeys:
    """The keys of the store's simulators; none if no simulator ever signed.

    If the auditor holds keys, only these count: the audited party wrote those in the ledger.
    """
    own = Stores.of(store).keys / SIMULATOR_KEYS
    if own.is_dir():
        return load_trusted(own)
    return read_trusted_keys((ledger or open_ledger(store)).signing_keys)


def trusted_steps(store: Path) -> TrustedKeys:
    """The keys of the steps; none if no step ever signed."""
    folder = _keys_folder(store, STEP_KEYS)
    return load_trusted(folder) if folder.is_dir() else {}


def open_evidence(store: Path, ledger: Ledger | None = None) -> Evidence:
    """The evidence for a store's runs; raises NotFound if no simulator ever signed."""
    stores = Stores.of(store)
    trusted = trusted_services(store, ledger)
    return Evidence(
        trusted=trusted or load_trusted(stores.keys / SIMULATOR_KEYS),
        mirror=WriteOnce(stores.mirror_url),
        step_keys=trusted_steps(store) or None,
    )


def open_sources(store: Path) -> Sources:
    """All sources of an audit; raises NotFound if nothing was ever registered."""
    check_store(store)
    registry, ledger = open_registry(store), open_ledger(store)
    evidence = open_evidence(store, ledger) if has_keys(store, ledger) else None
    return Sources(registry, ledger, store, evidence, trusted_steps(store))


def keys_of(store: Path, owner: str) -> list[StoredKey]:
    """Every trusted key; raises NotFound if there is none."""
    folder = _keys_folder(store, owner)
    current = current_key(folder)
    return [StoredKey(key=key, signs=key == current) for key in load_trusted(folder)]


def rotate_key(store: Path, owner: str) -> StoredKey:
    """Makes a new signing key; raises NotFound if there is no key yet."""
    return StoredKey(key=rotate(_keys_folder(store, owner)).public_key.keyid, signs=True)


def step_signer(store: Path) -> Signer:
    """The signing key of the steps that write weights; created if it is missing.

    Raises InputError in a working copy of a bucket without a configured key.
    """
    keys = _keys_folder(store, STEP_KEYS)
    signer = ensure_signer(keys)
    keep(keys / TRUSTED)
    return signer


def registering_signer(store: Path) -> Signer | None:
    """The same; null in a working copy without a configured key, where versions are unsigned."""
    if copy_of(store.resolve()) and not (_keys_folder(store, STEP_KEYS) / SIGNER).exists():
        return None
    return step_signer(store)


def _keys_folder(store: Path, owner: str) -> Path:
    return Stores.keys_of(store) / owner

"""Opens a store's ledger and the evidence for its records."""

from pathlib import Path

from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.client.credential import ClientSettings
from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.operations.keys import trusted_steps
from agentworld.operations.registry import check_store, open_registry
from agentworld.records.base import Digest, digest_json
from agentworld.signing.keys import SIMULATOR_KEYS, TrustedKeys, load_trusted
from agentworld.statements.mounted_keys import read_trusted_keys
from agentworld.storage.address import redact
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld.storage.stores import Stores

_SQLITE = "sqlite:///"


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

    If a service writes it, the service's address identifies it, whether or not the auditor has set
    it.
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

    If the auditor has own keys, only these count: the audited party wrote those in the ledger.
    """
    own = Stores.of(store).keys / SIMULATOR_KEYS
    if own.is_dir():
        return load_trusted(own)
    return read_trusted_keys((ledger or open_ledger(store)).signing_keys)


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
    evidence = open_evidence(store) if has_keys(store) else None
    return Sources(open_registry(store), open_ledger(store), store, evidence, trusted_steps(store))

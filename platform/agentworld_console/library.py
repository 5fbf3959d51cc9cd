"""The console's data sources: a store's ledger and registry, and the evidence for the record."""

import threading
import time
from pathlib import Path
from typing import NamedTuple

from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.ledger import Ledger
from agentworld.lineage.base import Registry
from agentworld.operations.ledger import existing_ledger, has_keys, open_evidence
from agentworld.operations.registry import check_store, open_registry
from agentworld.runner.remote import local_store
from agentworld.storage.working_copy import is_bucket

_PATIENCE_SECONDS = 10.0
"""Seconds that a page waits for a registry that does not answer; less than a step waits."""
_STALE_SECONDS = 30.0


class Records:
    """The manifests, receipts and reports of a store in a bucket, refreshed at intervals."""

    def __init__(self, store: str, stale_seconds: float = _STALE_SECONDS) -> None:
        """Downloads them; raises InputError and StoreError."""
        self.folder = local_store(store)
        self._store = store
        self._stale_seconds = stale_seconds
        self._fetched_at = time.monotonic()
        self._turn = threading.Lock()

    def refresh(self) -> None:
        """Downloads new ones if the last refresh is old; only one page waits for it."""
        is_stale = time.monotonic() - self._fetched_at >= self._stale_seconds
        if is_stale and self._turn.acquire(blocking=False):
            try:
                local_store(self._store)
                self._fetched_at = time.monotonic()
            finally:
                self._turn.release()


class Library(NamedTuple):
    """The open data sources; they stay open until the process ends."""

    registry: Registry
    ledger: Ledger
    store: Path
    records: Records | None = None
    """The records of a store in a bucket, of which `store` is the local copy."""

    @property
    def evidence(self) -> Evidence | None:
        """The evidence, with the currently trusted keys; null if nothing was ever signed."""
        if not has_keys(self.store, self.ledger):
            return None
        return open_evidence(self.store, self.ledger)

    def sources(self) -> Sources:
        """The sources of an audit."""
        return Sources(self.registry, self.ledger, self.store, self.evidence)


def open_library(store: str) -> Library:
    """Opens a folder, or a store in a bucket; raises NotFound if nothing was registered or served,
    InputError for a bucket without an address of its ledger or its registry.
    """
    records = Records(store) if is_bucket(store) else None
    folder = records.folder if records else Path(store)
    check_store(folder)
    ledger = existing_ledger(folder)  # before the registry, which creates its database
    return Library(open_registry(folder, _PATIENCE_SECONDS), ledger, folder, records)

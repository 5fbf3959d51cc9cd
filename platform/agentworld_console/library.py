"""What the console reads: a store's ledger and registry, and what proves the record."""

from pathlib import Path
from typing import NamedTuple

from agentworld.audit.evidence import Evidence
from agentworld.audit.sources import Sources
from agentworld.ledger import Ledger
from agentworld.lineage.base import Registry
from agentworld.steps.addresses import check_store, open_registry
from agentworld.steps.ledger import existing_ledger, has_keys, open_evidence


class Library(NamedTuple):
    """Open until the process ends."""

    registry: Registry
    ledger: Ledger
    store: Path

    @property
    def evidence(self) -> Evidence | None:
        """With the keys that are trusted now; null where nothing was ever signed."""
        if not has_keys(self.store, self.ledger):
            return None
        return open_evidence(self.store, self.ledger)

    def sources(self) -> Sources:
        """What an audit reads."""
        return Sources(self.registry, self.ledger, self.store, self.evidence)


def open_library(store: Path) -> Library:
    """Raises NotFound where nothing was ever registered or served."""
    check_store(store)
    return Library(open_registry(store), existing_ledger(store), store)

"""What an audit of a store reads."""

from pathlib import Path

from agentworld.audit.read.sources import Sources
from agentworld.operations.ledger import has_keys, open_evidence, open_ledger, trusted_steps
from agentworld.operations.registry import check_store, open_registry


def open_sources(store: Path) -> Sources:
    """All that an audit reads; raises NotFound where nothing was ever registered."""
    check_store(store)
    evidence = open_evidence(store) if has_keys(store) else None
    return Sources(open_registry(store), open_ledger(store), store, evidence, trusted_steps(store))

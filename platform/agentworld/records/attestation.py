"""A row for a signed statement."""

from typing import NamedTuple


class Attestation(NamedTuple):
    """A signed statement, as in the ledger and the evidence mirror."""

    name: str
    """The name of its copy in the evidence mirror."""
    kind: str
    """A key of `statement_kinds`."""
    subject: str
    """The subject, for searching: an agent's artifact, an alias, an episode, a run, a version."""
    simulator: str
    run: str
    at: str
    envelope: bytes

"""What the platform signed beside the logs of runs."""

from typing import NamedTuple


class Attestation(NamedTuple):
    """A signed statement, as the ledger and the evidence mirror both keep it."""

    name: str
    """Of the copy in the evidence mirror."""
    kind: str
    """Of `statement_kinds`."""
    subject: str
    """What it is about, for who searches: an agent's artifact, an alias, an episode, a run,
    a version."""
    simulator: str
    run: str
    at: str
    envelope: bytes

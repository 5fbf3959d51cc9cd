"""A public key whose signatures a ledger knows."""

from agentworld.records.base import Record


class SigningKey(Record):
    """A key, and the period in which it signed."""

    key: str
    """Its id: the sha256 of the public key in DER form."""
    public: str
    """The key, as PEM."""
    since: str
    """The time of its first use (ISO 8601)."""
    until: str | None = None
    """The time of its replacement; null for the current signer."""

"""A public key whose signatures a ledger knows."""

from agentworld.records.base import Record


class SigningKey(Record):
    """A key, and when it signed."""

    key: str
    """Its id: the sha256 of the public key in DER form."""
    public: str
    """The key, as PEM."""
    since: str
    """When it was used first (ISO 8601)."""
    until: str | None = None
    """When another one took its place; null for the one that signs."""

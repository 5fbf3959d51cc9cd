"""Figures of parts of the data path that are measured elsewhere; nothing is published of a null."""


def secret_recall() -> float | None:
    """The share of planted secrets that redaction replaces."""
    return None


def hashes_redacted() -> float | None:
    """How many hashes and UUIDs redaction takes for secrets."""
    return None


def guide_seconds() -> float | None:
    """The guide's whole path on generated logs."""
    return None

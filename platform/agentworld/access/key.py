"""API keys: drawn here, shown once, known afterwards by their digest alone."""

import hashlib
import secrets

PREFIX = "awk_"


def new_key() -> str:
    """256 drawn bits: too many to be guessed, so that a plain digest of it tells nothing."""
    return PREFIX + secrets.token_urlsafe(32)


def key_digest(key: str) -> str:
    """What is written down in place of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

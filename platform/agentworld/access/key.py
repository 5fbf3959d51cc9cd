"""API keys: generated here, printed once, stored as a digest only."""

import hashlib
import secrets

PREFIX = "awk_"


def new_key() -> str:
    """A new key of 256 random bits; a plain digest of it cannot be reversed by guessing."""
    return PREFIX + secrets.token_urlsafe(32)


def key_digest(key: str) -> str:
    """The digest that is stored in place of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

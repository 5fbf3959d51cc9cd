"""Where the engine of a simulator is on a cluster: by names that are made of its digest alone."""

from agentworld.records.base import Digest

ENGINE_PORT = 8000

_DIGITS = 32


def short(digest: Digest) -> str:
    """128 bits of a digest, which fit into every kind of name; a whole one fits into no label."""
    return digest.removeprefix("sha256:")[:_DIGITS]


def engine_name(digest: Digest) -> str:
    """Of all that one simulator's engine is made of, in its namespace."""
    return f"engine-{short(digest)}"


def engine_host(digest: Digest, namespace: str) -> str:
    """Resolves to the addresses of all replicas that are ready."""
    return f"{engine_name(digest)}.{namespace}.svc"

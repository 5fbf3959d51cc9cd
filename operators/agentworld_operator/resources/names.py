"""What is called how on a cluster: the API group, labels, and names made of a digest."""

from agentworld.records.base import Digest

GROUP = "agentworld.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
OPERATOR = "agentworld-operator"
"""The field manager of all that is applied, and who reports events."""

DIGEST_LABEL = f"{GROUP}/simulator"
"""On every child: the start of the digest, for a label holds 63 characters and a digest has 71."""

ENGINE_PORT = 8000

_DIGITS = 32


def short(digest: Digest) -> str:
    """128 bits of a digest, which fit into every kind of name."""
    return digest.removeprefix("sha256:")[:_DIGITS]


def engine_name(digest: Digest) -> str:
    """Of the Deployment, the Service and all else that one simulator's engine is made of."""
    return f"engine-{short(digest)}"


def engine_labels(digest: Digest) -> dict[str, str]:
    """What the pods of one engine are selected by."""
    return {"app.kubernetes.io/name": "agentworld-engine", DIGEST_LABEL: short(digest)}


def child_labels(digest: Digest) -> dict[str, str]:
    """On everything that belongs to one engine."""
    return engine_labels(digest) | {
        "app.kubernetes.io/component": "engine",
        "app.kubernetes.io/part-of": "agentworld",
        "app.kubernetes.io/managed-by": OPERATOR,
    }

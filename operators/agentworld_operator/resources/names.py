"""What is called how on a cluster: the API group, labels, and names made of a digest."""

from agentworld.engine.names import short
from agentworld.records.base import Digest

GROUP = "agentworld.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
OPERATOR = "agentworld-operator"
"""The field manager of all that is applied, and who reports events."""

DIGEST_LABEL = f"{GROUP}/simulator"
"""On every child: the start of the digest, for a label holds 63 characters and a digest has 71."""


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

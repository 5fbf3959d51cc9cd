"""Names that several programs share: API group, labels, annotations, engines."""

from agentworld.records.base import Digest

GROUP = "agentworld.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

OPERATOR = "agentworld-operator"
"""The operator's field manager, and the reporter of its events."""
PIPELINES = f"{GROUP}/pipelines"
"""The pipelines' field manager; a TrainJob refuses a name without a domain."""

DIGEST_LABEL = f"{GROUP}/simulator"
"""Label of all children: the start of the digest, whose 71 characters exceed a label's 63."""
MOVED_BY = f"{GROUP}/moved-by"
"""Annotation of an alias: the step that moved it last."""
RELEASE = f"{GROUP}/release"
"""Annotation of our CRDs: the release that wrote them."""
BUILT = f"{GROUP}/built"
"""Annotation with the digest of the whole specification of a job or of an engine's part."""
RESOURCES = f"{GROUP}/resources"
"""Annotation of a Job: the digest of its resources, which may change while it is suspended."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label by which Kueue finds a pod or a job."""

ENGINE_PORT = 8000

_DIGITS = 32


def short(digest: Digest) -> str:
    """The first 128 bits of a digest, because a label cannot hold all of it."""
    return digest.removeprefix("sha256:")[:_DIGITS]


def engine_name(digest: Digest) -> str:
    """The name of all objects of one simulator's engine, in its namespace."""
    return f"engine-{short(digest)}"


def engine_host(digest: Digest, namespace: str) -> str:
    """The host name that resolves to the addresses of all ready replicas."""
    return f"{engine_name(digest)}.{namespace}.svc"


def engine_labels(digest: Digest) -> dict[str, str]:
    """The selector of one engine's pods."""
    return {"app.kubernetes.io/name": "agentworld-engine", DIGEST_LABEL: short(digest)}


def child_labels(digest: Digest) -> dict[str, str]:
    """The labels of all objects of one engine."""
    return engine_labels(digest) | part_labels("agentworld-engine", OPERATOR, component="engine")


def part_labels(name: str, managed_by: str, **own_labels: str) -> dict[str, str]:
    """Kubernetes' recommended labels for an object of this project."""
    labels = {"name": name, "part-of": "agentworld", "managed-by": managed_by} | own_labels
    return {f"app.kubernetes.io/{key}": value for key, value in labels.items()}

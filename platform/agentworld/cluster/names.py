"""Names that several programs use on a cluster: API group, labels, annotations, engines."""

from agentworld.records.base import Digest

GROUP = "agentworld.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

OPERATOR = "agentworld-operator"
"""The field manager of all that the operator applies, and who reports events."""
PIPELINES = f"{GROUP}/pipelines"
"""The field manager of what a pipeline applies; a TrainJob takes none without a domain."""

DIGEST_LABEL = f"{GROUP}/simulator"
"""On every child: the start of the digest, for a label holds 63 characters and a digest has 71."""
MOVED_BY = f"{GROUP}/moved-by"
"""The annotation of an alias that names the step that moved it last."""
RELEASE = f"{GROUP}/release"
"""The annotation of a definition of ours that names the release that wrote it."""
BUILT = f"{GROUP}/built"
"""The annotation with the digest of all that a job, or a part of an engine, was built with."""
RESOURCES = f"{GROUP}/resources"
"""The annotation of a Job with the digest of its resources, which may change while it waits."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""By which Kueue admits a pod, or what makes pods."""

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


def engine_labels(digest: Digest) -> dict[str, str]:
    """What the pods of one engine are selected by."""
    return {"app.kubernetes.io/name": "agentworld-engine", DIGEST_LABEL: short(digest)}


def child_labels(digest: Digest) -> dict[str, str]:
    """On everything that belongs to one engine."""
    return engine_labels(digest) | part_labels("agentworld-engine", OPERATOR, component="engine")


def part_labels(name: str, managed_by: str, **own_labels: str) -> dict[str, str]:
    """Kubernetes' recommended labels of an object of ours."""
    labels = {"name": name, "part-of": "agentworld", "managed-by": managed_by} | own_labels
    return {f"app.kubernetes.io/{key}": value for key, value in labels.items()}

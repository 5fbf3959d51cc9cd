"""The security contexts of our pods, by Kubernetes' Pod Security Standards."""

from agentworld.cluster.api_resources import Object

USER = 65532
"""The user and the group of all our images, and the group that may write to their volumes."""

CONTAINER_SECURITY: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
"""What `restricted` asks of each container."""


def pod_security(*, seccomp: bool = True) -> Object:
    """What `restricted` asks of a pod, and its user; without a seccomp profile it is `baseline`."""
    context = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    return {**context, **({"seccompProfile": {"type": "RuntimeDefault"}} if seccomp else {})}

"""Security contexts of our pods, by Kubernetes' Pod Security Standards."""

from agentworld.cluster.api_resources import Object

USER = 65532
"""The user and group of all our images, and the group that owns volumes."""

CONTAINER_SECURITY: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
"""The container settings that `restricted` requires."""


def pod_security(*, seccomp: bool = True) -> Object:
    """The pod settings that `restricted` requires, with our user; `baseline` without seccomp."""
    context = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    return {**context, **({"seccompProfile": {"type": "RuntimeDefault"}} if seccomp else {})}

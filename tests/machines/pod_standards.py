"""Kubernetes' Pod Security Standards, as pod-security-admission checks them.

Its checks are kubernetes/pod-security-admission's of 1.37 (policy/check_*.go), for the fields of
our Linux pods; a field without a check fails, so that it is added.
"""

from collections.abc import Iterator
from typing import Any, Literal

Object = dict[str, Any]
Level = Literal["privileged", "baseline", "restricted"]

_VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
    *("persistentVolumeClaim", "projected", "secret"),
}
_PROFILES = {"RuntimeDefault", "Localhost"}
_POD_SECURITY = {
    *("runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "fsGroupChangePolicy"),
    "seccompProfile",
}
_CONTAINER_SECURITY = {
    *("runAsNonRoot", "runAsUser", "runAsGroup", "readOnlyRootFilesystem"),
    *("allowPrivilegeEscalation", "capabilities", "seccompProfile"),
}


def level_of(pod: Object) -> Level:
    """The strictest standard that a pod meets."""
    if any(_against_baseline(pod)):
        return "privileged"
    return "baseline" if any(_against_restricted(pod)) else "restricted"


def _against_baseline(pod: Object) -> Iterator[bool]:
    security = pod.get("securityContext", {})
    assert security.keys() <= _POD_SECURITY, security
    yield bool(pod.keys() & {"hostNetwork", "hostPID", "hostIPC"})
    yield any("hostPath" in volume for volume in pod.get("volumes", ()))
    yield _profile(security) not in {None, *_PROFILES}
    for container in _containers(pod):
        own = container.get("securityContext", {})
        assert own.keys() <= _CONTAINER_SECURITY, own
        yield any("hostPort" in port for port in container.get("ports", ()))
        yield bool(own.get("capabilities", {}).get("add"))  # some are allowed, but we need none
        yield _profile(own) not in {None, *_PROFILES}


def _against_restricted(pod: Object) -> Iterator[bool]:
    security = pod.get("securityContext", {})
    yield any(volume.keys() - {"name"} - _VOLUMES for volume in pod.get("volumes", ()))
    yield security.get("runAsUser") == 0
    for container in _containers(pod):
        own = container.get("securityContext", {})
        yield own.get("allowPrivilegeEscalation") is not False
        yield own.get("runAsNonRoot", security.get("runAsNonRoot")) is not True
        yield own.get("runAsUser") == 0
        yield (_profile(own) or _profile(security)) not in _PROFILES
        yield "ALL" not in own.get("capabilities", {}).get("drop", ())


def _containers(pod: Object) -> Iterator[Object]:
    yield from pod["containers"]
    yield from pod.get("initContainers", ())


def _profile(security: Object) -> str | None:
    profile: str | None = security.get("seccompProfile", {}).get("type")
    return profile

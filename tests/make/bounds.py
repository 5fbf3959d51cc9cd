"""Limits that an administrator sets for a namespace: a ResourceQuota, and a LimitRange."""

from typing import Any

from make.operator import Namespace
from waiting import wait_for

Object = dict[str, Any]

HARD = {
    "requests.cpu": "20",
    "requests.memory": "40Gi",
    "limits.cpu": "60",
    "limits.memory": "120Gi",
    "requests.storage": "400Gi",
    "persistentvolumeclaims": "10",
    "pods": "60",
}
"""A finite limit for every resource."""

LIMITS = [
    {
        "type": "Container",
        "default": {"cpu": "100m", "memory": "64Mi"},
        "defaultRequest": {"cpu": "50m", "memory": "32Mi"},
        "max": {"cpu": "4", "memory": "8Gi"},
    },
    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "100Gi"}},
]
"""The default limits of a container are too small for any of ours."""


def set_quota(namespace: Namespace, hard: Object = HARD) -> None:
    """Returns once the quota is enforced."""
    path = f"/api/v1/namespaces/{namespace.namespace}/resourcequotas"
    namespace.call("POST", path, {"metadata": {"name": "team"}, "spec": {"hard": hard}})
    wait_for(lambda: used(namespace).keys() >= hard.keys())


def used(namespace: Namespace) -> Object:
    """The current usage of each resource; empty until the quota is enforced."""
    path = f"/api/v1/namespaces/{namespace.namespace}/resourcequotas/team"
    return dict(namespace.call("GET", path).get("status", {}).get("used", {}))


def set_limits(namespace: Namespace) -> None:
    """Sets limits for each container and claim."""
    path = f"/api/v1/namespaces/{namespace.namespace}/limitranges"
    namespace.call("POST", path, {"metadata": {"name": "team"}, "spec": {"limits": LIMITS}})

"""The accelerators of an engine's replicas, from their pods: devices, and node labels."""

from collections.abc import Iterable, Mapping
from typing import Any

_NO_DEVICES = ("cpu", "memory", "ephemeral-storage", "hugepages-")

Object = Mapping[str, Any]


def describe(limits: Mapping[str, object], selector: Mapping[str, str]) -> str:
    """As `1 x nvidia.com/gpu on pool=h100`."""
    counts = sorted(limits.items())
    devices = [f"{count} x {name}" for name, count in counts if not name.startswith(_NO_DEVICES)]
    nodes = ", ".join(f"{name}={value}" for name, value in sorted(selector.items()))
    return (", ".join(devices) or "cpu") + (f" on {nodes}" if nodes else "")


def describe_replicas(pods: Iterable[Object]) -> tuple[str, ...]:
    """One value if all replicas have the same; otherwise one for each, after its pod's name."""
    descriptions = {pod["metadata"]["name"]: _of_pod(pod.get("spec") or {}) for pod in pods}
    if len(set(descriptions.values())) <= 1:
        return tuple(set(descriptions.values()))
    return tuple(f"{name}: {description}" for name, description in sorted(descriptions.items()))


def _of_pod(spec: Object) -> str:
    limits: dict[str, object] = {}
    for container in spec.get("containers") or ():
        limits |= (container.get("resources") or {}).get("limits") or {}
    return describe(limits, spec.get("nodeSelector") or {})

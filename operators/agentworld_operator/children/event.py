"""Kubernetes Events about changes of our resources, for `kubectl describe`."""

from collections.abc import Mapping
from typing import Any, Protocol

from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.names import OPERATOR
from agentworld.cluster.records.base import Condition
from agentworld.records.base import digest_json

_BAD = {
    ("Verified", "False"),
    ("Ready", "False"),
    ("Degraded", "True"),
    ("Resolved", "False"),
    ("Scheduled", "False"),
}
_BAD_REASONS = {"NotAsked", "Returned"}  # an alias's object and the ledger disagree
_SUMS = {"Ready", "Scheduled"}


class Status(Protocol):
    """The status of any of our kinds."""

    @property
    def conditions(self) -> tuple[Condition, ...]: ...


def transitions(
    kind: str, resource: Mapping[str, Any], before: Status, after: Status, now: str
) -> list[dict[str, Any]]:
    """An event for each changed condition; for a new resource, only for the one that sums it up."""
    previous = {condition.type: condition for condition in before.conditions}
    changed = [
        condition
        for condition in after.conditions
        if _differs(previous.get(condition.type), condition)
    ]
    return [_event(kind, resource, condition, now) for condition in changed]


def _differs(before: Condition | None, after: Condition) -> bool:
    if before is None:
        return after.type in _SUMS
    return (before.status, before.reason) != (after.status, after.reason)


def _event(
    kind: str, resource: Mapping[str, Any], condition: Condition, now: str
) -> dict[str, Any]:
    metadata = resource["metadata"]
    involved = {
        **type_fields(kind),
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }
    fields = condition.model_dump(mode="json", exclude={"last_transition_time"})
    # The name has the resource version, so that a retry writes the same event.
    suffix = digest_json([metadata["uid"], metadata["resourceVersion"], fields]).removeprefix(
        "sha256:"
    )[:16]
    is_bad = (condition.type, condition.status) in _BAD or condition.reason in _BAD_REASONS
    return {
        **type_fields("Event"),
        "metadata": {"name": f"{metadata['name']}.{suffix}", "namespace": metadata["namespace"]},
        "involvedObject": involved,
        "type": "Warning" if is_bad else "Normal",
        "reason": condition.reason,
        "message": f"{condition.type} is {condition.status}: {condition.message}".rstrip(": "),
        "source": {"component": OPERATOR},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }

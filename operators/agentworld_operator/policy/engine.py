"""What an engine's Deployment and pods tell: how many are ready, and what keeps the others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

VERIFIER = "verify"
"""The init container that checks the weights."""

_HOPELESS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_CONFIGURED = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_MOST_WORDS = 512

Object = Mapping[str, Any]
"""An object as the API server tells it."""


class Trouble(NamedTuple):
    """What keeps a pod from being ready."""

    reason: str
    message: str


class EngineSeen(NamedTuple):
    """An engine as it is."""

    replicas: int = 0
    ready: int = 0
    verified: bool = False
    """Whether a pod's weights were found to be the pinned ones."""
    trouble: Trouble | None = None


def engine_seen(deployment: Object | None, pods: Iterable[Object]) -> EngineSeen:
    """What can be said of an engine; null is a Deployment that is not there."""
    status = (deployment or {}).get("status") or {}
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    troubles = [found for pod in alive if (found := _trouble(pod))]
    return EngineSeen(
        replicas=status.get("replicas", 0),
        ready=status.get("readyReplicas", 0),
        verified=any(_is_verified(pod) for pod in alive),
        trouble=min(troubles, key=_urgency, default=None),
    )


def _is_verified(pod: Object) -> bool:
    for container in _statuses(pod, "initContainerStatuses"):
        ended = container["state"].get("terminated")
        if container["name"] == VERIFIER and ended and ended["exitCode"] == 0:
            return True
    return False


def _trouble(pod: Object) -> Trouble | None:
    inits = _statuses(pod, "initContainerStatuses")
    containers = [*inits, *_statuses(pod, "containerStatuses")]
    found = [trouble for container in containers if (trouble := _of_container(container))]
    return min([*found, *_unscheduled(pod)], key=_urgency, default=None)


def _of_container(container: Object) -> Trouble | None:
    state, before = container["state"], container.get("lastState") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or before.get("terminated") or {}
    failed = ended.get("exitCode", 0) != 0
    if container["name"] == VERIFIER and failed:
        return Trouble("VerificationFailed", _words(ended.get("message"), "the weights differ"))
    if waiting.get("reason") in (*_HOPELESS, *_CONFIGURED):
        return Trouble(waiting["reason"], _words(waiting.get("message"), "look at the pod"))
    if failed and not container.get("ready"):
        code = f"the engine ended with status {ended['exitCode']}"
        return Trouble("EngineEnded", _words(ended.get("message"), code))
    return None


def _unscheduled(pod: Object) -> list[Trouble]:
    for told in (pod.get("status") or {}).get("conditions") or ():
        if told["type"] == "PodScheduled" and told.get("reason") == "Unschedulable":
            return [Trouble("Unschedulable", _words(told.get("message"), "no node has room"))]
    return []


def _statuses(pod: Object, kind: str) -> Sequence[Object]:
    return (pod.get("status") or {}).get(kind) or ()


def _urgency(trouble: Trouble) -> tuple[int, Trouble]:
    """Wrong weights first; equal for equal pods in any order, so that nothing is said anew."""
    order = ("VerificationFailed", *_HOPELESS, *_CONFIGURED, "EngineEnded", "Unschedulable")
    return order.index(trouble.reason), trouble


def _words(told: str | None, otherwise: str) -> str:
    return (told or otherwise).strip()[:_MOST_WORDS]

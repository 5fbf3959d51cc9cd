"""Reads an engine's Deployment and pods: how many are ready, and what keeps the others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentworld_operator.policy.accelerators import describe_replicas

VERIFIER = "verify"
"""The init container that checks the weights."""

_HOPELESS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_CONFIGURED = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_NOT_BOUND = ("Unschedulable", "SchedulingGated")
_FAILED_CREATE, _LATE = "FailedCreate", "ProgressDeadlineExceeded"
_URGENCY = (
    "VerificationFailed",
    *_HOPELESS,
    *_CONFIGURED,
    "EngineEnded",
    _FAILED_CREATE,
    *_NOT_BOUND,
    "PodFailed",
    _LATE,
)
"""Wrong weights first, and last what only says that something took too long."""
MOST_CHARACTERS = 512
"""Of a message that is shown."""

Object = Mapping[str, Any]
"""An object as the API server has it."""


class Trouble(NamedTuple):
    """What keeps a pod from being ready."""

    reason: str
    message: str


class EngineState(NamedTuple):
    """An engine as it is."""

    replicas: int = 0
    ready: int = 0
    verified: bool = False
    """Whether a pod's weights were found to be the pinned ones."""
    trouble: Trouble | None = None
    accelerators: tuple[str, ...] = ()
    """Of its replicas, where there are any."""


def observe_engine(deployment: Object | None, pods: Iterable[Object]) -> EngineState:
    """What can be said of an engine; null is a Deployment that is not there."""
    status = (deployment or {}).get("status") or {}
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    troubles = _of_deployment(status)
    for pod in alive:
        if not _has_failed(pod):
            troubles += _of_pod(pod)
        elif status.get("replicas", 0) > status.get("readyReplicas", 0):
            troubles.append(_failure(pod))
    return EngineState(
        replicas=status.get("replicas", 0),
        ready=status.get("readyReplicas", 0),
        verified=any(_is_verified(pod) for pod in alive),
        trouble=min(troubles, key=_urgency, default=None),
        accelerators=describe_replicas(alive),
    )


def _of_deployment(status: Object) -> list[Trouble]:
    """What no pod can show, as a quota that lets none be made."""
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    refused, progress = conditions.get("ReplicaFailure", {}), conditions.get("Progressing", {})
    troubles = []
    if refused.get("status") == "True":
        words = _words(refused.get("message"), "no pod can be made")
        troubles.append(Trouble(_FAILED_CREATE, words))
    if progress.get("reason") == _LATE:
        troubles.append(
            Trouble(_LATE, _words(progress.get("message"), "the engine takes too long"))
        )
    return troubles


def _has_failed(pod: Object) -> bool:
    """By its node, as one that was evicted: it stays as it is, and another one takes its place."""
    return (pod.get("status") or {}).get("phase") == "Failed"


def _failure(pod: Object) -> Trouble:
    status = pod["status"]
    words = (
        f"{status.get('reason') or 'Failed'}: {status.get('message') or 'its node says no more'}"
    )
    return Trouble("PodFailed", _words(words, ""))


def _is_verified(pod: Object) -> bool:
    for container in _statuses(pod, "initContainerStatuses"):
        ended = container["state"].get("terminated")
        if container["name"] == VERIFIER and ended and ended["exitCode"] == 0:
            return True
    return False


def _of_pod(pod: Object) -> list[Trouble]:
    inits = _statuses(pod, "initContainerStatuses")
    containers = [*inits, *_statuses(pod, "containerStatuses")]
    troubles = [trouble for container in containers if (trouble := _of_container(container))]
    return [*troubles, *_unscheduled(pod)]


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
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") in _NOT_BOUND:
            return [
                Trouble(condition["reason"], _words(condition.get("message"), "no node has room"))
            ]
    return []


def _statuses(pod: Object, kind: str) -> Sequence[Object]:
    return (pod.get("status") or {}).get(kind) or ()


def _urgency(trouble: Trouble) -> tuple[int, Trouble]:
    """Equal for equal pods in any order, so that nothing is said anew."""
    return _URGENCY.index(trouble.reason), trouble


def _words(message: str | None, otherwise: str) -> str:
    return (message or otherwise).strip()[:MOST_CHARACTERS]

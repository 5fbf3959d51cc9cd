"""Reads an engine's Deployment and pods: the ready replicas, and the problems of the others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentworld_operator.policy.accelerators import describe_replicas
from agentworld_operator.policy.problem import Problem

VERIFIER = "verify"
"""The init container that checks the weights."""
_REFUSED = 2
"""Its exit status if it refuses the weights; with any other it did not finish."""

_PULL_FAILURES = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_CONFIGURED = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_NOT_BOUND = ("Unschedulable", "SchedulingGated")
_FAILED_CREATE, _DEADLINE_EXCEEDED = "FailedCreate", "ProgressDeadlineExceeded"
_URGENCY = (
    "VerificationFailed",
    *_PULL_FAILURES,
    *_CONFIGURED,
    "VerifierEnded",
    "EngineEnded",
    _FAILED_CREATE,
    *_NOT_BOUND,
    "PodFailed",
    _DEADLINE_EXCEEDED,
)
"""By severity: wrong weights first, and last a mere timeout."""
MOST_CHARACTERS = 512
"""The longest message."""

Object = Mapping[str, Any]
"""An object in the API server's form."""


class EngineState(NamedTuple):
    """The observed state of an engine."""

    replicas: int = 0
    ready: int = 0
    verified: bool = False
    """Whether a pod's weights were verified."""
    problem: Problem | None = None
    accelerators: tuple[str, ...] = ()
    """The accelerators of its replicas, if there are any."""


def observe_engine(deployment: Object | None, pods: Iterable[Object]) -> EngineState:
    """The state of an engine; null is a missing Deployment."""
    status = (deployment or {}).get("status") or {}
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    problems = _of_deployment(status)
    for pod in alive:
        if not _has_failed(pod):
            problems += _of_pod(pod)
        elif status.get("replicas", 0) > status.get("readyReplicas", 0):
            problems.append(_failure(pod))
    return EngineState(
        replicas=status.get("replicas", 0),
        ready=status.get("readyReplicas", 0),
        verified=any(_is_verified(pod) for pod in alive),
        problem=min(problems, key=_urgency, default=None),
        accelerators=describe_replicas(alive),
    )


def _of_deployment(status: Object) -> list[Problem]:
    """Problems that no pod shows, such as a quota that prevents pods."""
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    failure, progress = conditions.get("ReplicaFailure", {}), conditions.get("Progressing", {})
    problems = []
    if failure.get("status") == "True":
        message = _shorten(failure.get("message"), "no pod can be made")
        problems.append(Problem(_FAILED_CREATE, message))
    if progress.get("reason") == _DEADLINE_EXCEEDED:
        problems.append(
            Problem(
                _DEADLINE_EXCEEDED, _shorten(progress.get("message"), "the engine takes too long")
            )
        )
    return problems


def _has_failed(pod: Object) -> bool:
    """Whether its node ended the pod, as by an eviction: it stays listed, and is replaced."""
    return (pod.get("status") or {}).get("phase") == "Failed"


def _failure(pod: Object) -> Problem:
    status = pod["status"]
    message = (
        f"{status.get('reason') or 'Failed'}: {status.get('message') or 'its node gives no reason'}"
    )
    return Problem("PodFailed", _shorten(message, ""))


def _is_verified(pod: Object) -> bool:
    for container in _statuses(pod, "initContainerStatuses"):
        ended = container["state"].get("terminated")
        if container["name"] == VERIFIER and ended and ended["exitCode"] == 0:
            return True
    return False


def _of_pod(pod: Object) -> list[Problem]:
    init_statuses = _statuses(pod, "initContainerStatuses")
    containers = [*init_statuses, *_statuses(pod, "containerStatuses")]
    problems = [problem for container in containers if (problem := _of_container(container))]
    return [*problems, *_scheduling_problems(pod)]


def _of_container(container: Object) -> Problem | None:
    state, before = container["state"], container.get("lastState") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or before.get("terminated") or {}
    failed = ended.get("exitCode", 0) != 0
    if container["name"] == VERIFIER and failed:
        return _verifier_problem(ended)
    if waiting.get("reason") in (*_PULL_FAILURES, *_CONFIGURED):
        return Problem(waiting["reason"], _shorten(waiting.get("message"), "look at the pod"))
    if failed and not container.get("ready"):
        code = f"the engine ended with status {ended['exitCode']}"
        return Problem("EngineEnded", _shorten(ended.get("message"), code))
    return None


def _verifier_problem(ended: Object) -> Problem:
    if ended["exitCode"] == _REFUSED:
        return Problem("VerificationFailed", _shorten(ended.get("message"), "the weights differ"))
    status = f"the verifier of the weights ended with status {ended['exitCode']}"
    return Problem("VerifierEnded", _shorten(ended.get("message"), status))


def _scheduling_problems(pod: Object) -> list[Problem]:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") in _NOT_BOUND:
            return [
                Problem(condition["reason"], _shorten(condition.get("message"), "no node has room"))
            ]
    return []


def _statuses(pod: Object, kind: str) -> Sequence[Object]:
    return (pod.get("status") or {}).get(kind) or ()


def _urgency(problem: Problem) -> tuple[int, Problem]:
    """The order of problems; it does not depend on the order of pods, so the status is stable."""
    return _URGENCY.index(problem.reason), problem


def _shorten(message: str | None, fallback: str) -> str:
    return (message or fallback).strip()[:MOST_CHARACTERS]

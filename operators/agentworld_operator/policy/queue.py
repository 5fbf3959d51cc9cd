"""Chooses the queue of Kueue that an engine is in.

Kueue's webhook refuses every update of a Deployment that changes its queue while a replica is
ready, or that takes the queue away (`ValidateUpdate` in
`pkg/controller/jobs/deployment/deployment_webhook.go`). An update that changed the replicas with
the queue would be refused with it, and the engine could not be scaled any more.
"""

from typing import NamedTuple

from agentworld.cluster.names import QUEUE_LABEL
from agentworld_operator.policy.engine import Object
from agentworld_operator.policy.problem import Problem


class QueueChoice(NamedTuple):
    """The queue that the engine has until the next round."""

    queue: str | None
    problem: Problem | None = None
    """Why it is not the requested one."""


def choose_queue(queue: str | None, deployment: Object | None) -> QueueChoice:
    """The requested queue, or the Deployment's current one if Kueue would refuse the change."""
    if deployment is None:
        return QueueChoice(queue)
    metadata = deployment["metadata"]
    current = (metadata.get("labels") or {}).get(QUEUE_LABEL)
    if queue == current:
        return QueueChoice(current)
    if queue is None:
        message = (
            f"Kueue lets no Deployment out of its queue ({current}); delete the Deployment"
            f" {metadata['name']}, and the operator creates it again without a queue"
        )
        return QueueChoice(current, Problem("QueueKept", message))
    if (deployment.get("status") or {}).get("readyReplicas", 0):
        message = (
            "Kueue changes no queue while a replica is ready; the engine moves from"
            f" {current or 'no queue'} to {queue} once spec.serving.suspend or its bounds have"
            " stopped all replicas"
        )
        return QueueChoice(current, Problem("QueueKept", message))
    return QueueChoice(queue)

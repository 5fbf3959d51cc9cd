"""Records a change of one of our resources: its events first, then its status."""

import asyncio
import logging
from typing import Protocol, Self

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import EXISTS, Cluster
from agentworld.errors import ClusterError
from agentworld_operator.children.event import Status, transitions

_log = logging.getLogger(__name__)


class ResourceStatus(Status, Protocol):
    """The status of any resource of ours, as a record."""

    @classmethod
    def model_validate(cls, obj: object) -> Self: ...

    def model_dump(self, *, mode: str) -> Object: ...


async def write_status(
    cluster: Cluster, kind: str, resource: Object, before: Status, after: ResourceStatus, now: str
) -> Object:
    """Writes the events before the status; returns the updated object.

    Each call has its own thread: if it is cancelled, it writes nothing more, because another
    replica may lead.
    """
    for event in transitions(kind, resource, before, after, now):
        await asyncio.to_thread(_create, cluster, event)
    name, status = resource["metadata"]["name"], after.model_dump(mode="json")
    return await asyncio.to_thread(cluster.write_status, kind, name, status)


def _create(cluster: Cluster, event: Object) -> None:
    """Ignores failures: an event is for people, and the status is written anyway."""
    try:
        cluster.create(event)
    except ClusterError as error:
        if error.status != EXISTS:  # the status could not be written the last time
            _log.warning("%s: %s", event["metadata"]["name"], error)

"""Records a change of a resource of ours: its events first, then its status."""

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
    """Whoever reads the status finds its events; returns the object as it is afterwards.

    Each call has a thread of its own: cancelled, it writes nothing more, for another may lead.
    """
    for event in transitions(kind, resource, before, after, now):
        await asyncio.to_thread(_create, cluster, event)
    name, status = resource["metadata"]["name"], after.model_dump(mode="json")
    return await asyncio.to_thread(cluster.write_status, kind, name, status)


def _create(cluster: Cluster, event: Object) -> None:
    """An event is for people to read: without it the status is written all the same."""
    try:
        cluster.create(event)
    except ClusterError as error:
        if error.status != EXISTS:  # the status could not be written the time before
            _log.warning("%s: %s", event["metadata"]["name"], error)

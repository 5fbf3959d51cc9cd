"""Children as they were built: written where they are not so, and left alone where they are."""

import asyncio
import json

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld_operator.cache import Cache
from agentworld_operator.policy.drift import is_as_built


class Applier:
    """Applies what differs, once for each difference."""

    def __init__(self, cluster: Cluster, cache: Cache) -> None:
        self._cluster = cluster
        self._cache = cache
        self._applied: dict[tuple[str, str], tuple[int, object]] = {}

    async def apply(self, built: Object) -> None:
        """Makes a child be as built."""
        kind, name = built["kind"], built["metadata"]["name"]
        current = self._cache.get(kind, name)
        if current and is_as_built(built, current):
            return
        # Some servers write the same in other words, as `1` for `1000m`: once is enough.
        built_hash = hash(json.dumps(built, sort_keys=True))
        if current and self._applied.get((kind, name)) == (built_hash, _state(current)):
            return
        resource = await asyncio.to_thread(self._cluster.apply, built)
        self._cache.put(kind, resource)
        self._applied[kind, name] = built_hash, _state(resource)


def _state(current: Object) -> object:
    """What is another one when somebody changed what an object should be.

    A generation does not count what is said of the object itself: whose it is, and its labels.
    """
    metadata = current["metadata"]
    version = metadata.get("generation", metadata["resourceVersion"])
    labels_and_owners = [metadata.get(name) for name in ("labels", "ownerReferences")]
    return metadata["uid"], version, json.dumps(labels_and_owners, sort_keys=True)

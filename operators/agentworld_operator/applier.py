"""Applies children that differ from what was built, and leaves equal ones alone."""

import asyncio
import json

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld_operator.cache import Cache
from agentworld_operator.policy.drift import is_as_built


class Applier:
    """Applies each difference once."""

    def __init__(self, cluster: Cluster, cache: Cache) -> None:
        self._cluster = cluster
        self._cache = cache
        self._applied: dict[tuple[str, str], tuple[int, object]] = {}

    async def apply(self, built: Object) -> None:
        """Makes a child equal to what was built."""
        kind, name = built["kind"], built["metadata"]["name"]
        current = self._cache.get(kind, name)
        if current and is_as_built(built, current):
            return
        # Some servers return another form, as `1` for `1000m`, so a difference is applied once.
        built_hash = hash(json.dumps(built, sort_keys=True))
        if current and self._applied.get((kind, name)) == (built_hash, _state(current)):
            return
        resource = await asyncio.to_thread(self._cluster.apply, built)
        self._cache.put(kind, resource)
        self._applied[kind, name] = built_hash, _state(resource)


def _state(current: Object) -> object:
    """The state that changes if someone changes the object's specification.

    A generation does not count metadata: owners and labels.
    """
    metadata = current["metadata"]
    version = metadata.get("generation", metadata["resourceVersion"])
    labels_and_owners = [metadata.get(name) for name in ("labels", "ownerReferences")]
    return metadata["uid"], version, json.dumps(labels_and_owners, sort_keys=True)

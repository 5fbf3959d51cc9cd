"""Children as they were built: written where they are not so, and left alone where they are."""

import asyncio
import json

from agentworld_operator.cluster import Cluster
from agentworld_operator.policy.drift import is_as_built
from agentworld_operator.watched import Cache
from agentworld_pipelines.api_server import Object


class Applier:
    """Applies what differs, once for each difference."""

    def __init__(self, cluster: Cluster, cache: Cache) -> None:
        self._cluster = cluster
        self._cache = cache
        self._applied: dict[tuple[str, str], tuple[int, object]] = {}

    async def apply(self, built: Object) -> None:
        """Makes a child be as built."""
        kind, name = built["kind"], built["metadata"]["name"]
        found = self._cache.get(kind, name)
        if found and is_as_built(built, found):
            return
        # Some servers write the same in other words, as `1` for `1000m`: once is enough.
        wanted = hash(json.dumps(built, sort_keys=True))
        if found and self._applied.get((kind, name)) == (wanted, _state(found)):
            return
        applied = await asyncio.to_thread(self._cluster.apply, built)
        self._cache.put(kind, applied)
        self._applied[kind, name] = wanted, _state(applied)


def _state(found: Object) -> object:
    """What is another one when somebody changed what an object should be.

    A generation does not count what is said of the object itself: whose it is, and its labels.
    """
    metadata = found["metadata"]
    version = metadata.get("generation", metadata["resourceVersion"])
    said = [metadata.get(name) for name in ("labels", "ownerReferences")]
    return metadata["uid"], version, json.dumps(said, sort_keys=True)

"""The objects as the watches saw them last: all that a decision depends on, by kind and name."""

from collections import defaultdict
from collections.abc import Iterable

from agentworld.cluster.api_resources import Object
from agentworld.cluster.names import DIGEST_LABEL

OWN = ("Simulator", "SimulatorAlias", "TrainingSchedule")
"""Our resources, all of which are watched; of the others, what is an engine's."""
WATCHED = (*OWN, "Deployment", "Service", "ConfigMap", "PodDisruptionBudget", "Pod")
_MAX_DELETED = 10_000
"""Many more than go while an answer is on its way."""


class Cache:
    """Objects as they were seen last. Older news than what is known is dropped."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in WATCHED}
        self._of_engine: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._deleted: dict[str, None] = {}
        """The uids of the objects that were deleted last, the oldest first."""

    def put(self, kind: str, resource: Object) -> list[Object]:
        """Takes in an object. Returns nothing where it is no news, else the object, after the one
        that it took the place of where that was another one, or another engine's.
        """
        resource = _without_managers(resource)
        name = resource["metadata"]["name"]
        current = self._objects[kind].get(name)
        # An answer to a request may come after the watch told that the object is deleted.
        is_deleted = resource["metadata"]["uid"] in self._deleted
        if is_deleted or (current and _is_older(resource, current)):
            return []
        before = [current] if current and not _is_same(resource, current) else []
        for predecessor in before:
            self._forget(kind, predecessor)
        self._objects[kind][name] = resource
        if engine := _engine(resource):
            self._of_engine[kind, engine].add(name)
        return [*before, resource]

    def drop(self, kind: str, resource: Object) -> None:
        """Forgets an object that was deleted; another one of its name stays."""
        self._deleted[resource["metadata"]["uid"]] = None
        if len(self._deleted) > _MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]
        self._forget(kind, resource)

    def _forget(self, kind: str, resource: Object) -> None:
        name = resource["metadata"]["name"]
        current = self._objects[kind].get(name)
        if current is None or current["metadata"]["uid"] != resource["metadata"]["uid"]:
            return
        del self._objects[kind][name]
        if engine := _engine(current):
            self._of_engine[kind, engine].discard(name)
            if not self._of_engine[kind, engine]:
                del self._of_engine[kind, engine]

    def get(self, kind: str, name: str) -> Object | None:
        """An object, if it is there."""
        return self._objects[kind].get(name)

    def all(self, kind: str) -> list[Object]:
        """Every object of a kind."""
        return list(self._objects[kind].values())

    def of_engine(self, kind: str, engine: str) -> list[Object]:
        """The objects of a kind that carry an engine's label."""
        return [
            self._objects[kind][name] for name in sorted(self._of_engine.get((kind, engine), ()))
        ]

    def replace(self, kind: str, version: int, resources: Iterable[Object]) -> list[Object]:
        """Takes in all objects as they were at a version; returns what is new, other, or gone."""
        by_name = {resource["metadata"]["name"]: resource for resource in resources}
        others = [resource for resource in by_name.values() if self._is_other(kind, resource)]
        changed = [change for other in others for change in self.put(kind, other)]
        missing = [
            resource for name, resource in self._objects[kind].items() if name not in by_name
        ]
        # One that came after that version is not gone.
        deletions = [resource for resource in missing if _version(resource["metadata"]) <= version]
        for resource in deletions:
            self.drop(kind, resource)
        return changed + deletions

    def _is_other(self, kind: str, resource: Object) -> bool:
        current = self._objects[kind].get(resource["metadata"]["name"])
        version = resource["metadata"]["resourceVersion"]
        return current is None or current["metadata"]["resourceVersion"] != version


def _without_managers(resource: Object) -> Object:
    """Who wrote which field decides nothing here, and thousands of objects are kept."""
    metadata = {key: value for key, value in resource["metadata"].items() if key != "managedFields"}
    return {**resource, "metadata": metadata}


def _engine(resource: Object) -> str | None:
    return (resource["metadata"].get("labels") or {}).get(DIGEST_LABEL)


def _is_same(resource: Object, current: Object) -> bool:
    """A broken watch may tell of the next one of a name, and not that the last one went."""
    return (resource["metadata"]["uid"], _engine(resource)) == (
        current["metadata"]["uid"],
        _engine(current),
    )


def _is_older(resource: Object, current: Object) -> bool:
    """A watch may lag behind the answer to a write."""
    metadata, current_metadata = resource["metadata"], current["metadata"]
    return metadata["uid"] == current_metadata["uid"] and _version(metadata) < _version(
        current_metadata
    )


def _version(metadata: Object) -> int:
    """Of a write; a later one has a greater number."""
    return int(metadata["resourceVersion"])

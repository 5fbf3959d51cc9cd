"""The last state of all watched objects, by kind and name; all decisions depend on it."""

from collections import defaultdict
from collections.abc import Iterable

from agentworld.cluster.api_resources import Object
from agentworld.cluster.names import DIGEST_LABEL

OWN = ("Simulator", "SimulatorAlias", "TrainingSchedule")
"""Our own resources, all of which are watched; of other kinds, only those of engines."""
WATCHED = (*OWN, "Deployment", "Service", "ConfigMap", "PodDisruptionBudget", "Pod")
_MAX_DELETED = 10_000
"""More than can be deleted while a response is on its way."""


class Cache:
    """The last state of objects. Older versions than the known one are ignored."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in WATCHED}
        self._of_engine: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._deleted: dict[str, int] = {}
        """The versions at which the last deleted objects went, by uid, the oldest first.

        An object that loses its engine's label leaves the watch like a deleted one. It comes back
        with a later version.
        """

    def put(self, kind: str, resource: Object) -> list[Object]:
        """Stores an object.

        Returns nothing if it is not new; otherwise the object, after its predecessor if that was
        another object or belonged to another engine.
        """
        resource = _without_managers(resource)
        name = resource["metadata"]["name"]
        current = self._objects[kind].get(name)
        # The response to a request may arrive after the watch reported the deletion.
        if self._is_deleted(resource) or (current and _is_older(resource, current)):
            return []
        before = [current] if current and not _is_same(resource, current) else []
        for predecessor in before:
            self._forget(kind, predecessor)
        self._objects[kind][name] = resource
        if engine := _engine(resource):
            self._of_engine[kind, engine].add(name)
        return [*before, resource]

    def drop(self, kind: str, resource: Object) -> None:
        """Removes an object that a watch reports as deleted at the resource's version.

        A later version of the object stays, and so does another object of the same name.
        """
        self._drop(kind, resource, _version(resource["metadata"]))

    def _drop(self, kind: str, resource: Object, version: int) -> None:
        uid = resource["metadata"]["uid"]
        self._deleted[uid] = max(version, self._deleted.pop(uid, 0))
        if len(self._deleted) > _MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]
        current = self._objects[kind].get(resource["metadata"]["name"])
        if current and self._is_deleted(current):
            self._forget(kind, current)

    def _is_deleted(self, resource: Object) -> bool:
        """Whether this version of the object is not later than its deletion."""
        metadata = resource["metadata"]
        return _version(metadata) <= self._deleted.get(metadata["uid"], -1)

    def _forget(self, kind: str, current: Object) -> None:
        name = current["metadata"]["name"]
        del self._objects[kind][name]
        if engine := _engine(current):
            self._of_engine[kind, engine].discard(name)
            if not self._of_engine[kind, engine]:
                del self._of_engine[kind, engine]

    def get(self, kind: str, name: str) -> Object | None:
        """An object, or null."""
        return self._objects[kind].get(name)

    def all(self, kind: str) -> list[Object]:
        """Every object of a kind."""
        return list(self._objects[kind].values())

    def of_engine(self, kind: str, engine: str) -> list[Object]:
        """The objects of a kind with an engine's label."""
        return [
            self._objects[kind][name] for name in sorted(self._of_engine.get((kind, engine), ()))
        ]

    def replace(self, kind: str, version: int, resources: Iterable[Object]) -> list[Object]:
        """Stores a complete list at a version; returns new, changed and removed objects."""
        by_name = {resource["metadata"]["name"]: resource for resource in resources}
        others = [resource for resource in by_name.values() if self._is_other(kind, resource)]
        changed = [change for other in others for change in self.put(kind, other)]
        missing = [
            resource for name, resource in self._objects[kind].items() if name not in by_name
        ]
        # An object that was created after that version is not removed.
        deletions = [resource for resource in missing if _version(resource["metadata"]) <= version]
        for resource in deletions:
            self._drop(kind, resource, version)
        return changed + deletions

    def _is_other(self, kind: str, resource: Object) -> bool:
        current = self._objects[kind].get(resource["metadata"]["name"])
        version = resource["metadata"]["resourceVersion"]
        return current is None or current["metadata"]["resourceVersion"] != version


def _without_managers(resource: Object) -> Object:
    """Removes the managed fields, which no decision needs and which take much memory."""
    metadata = {key: value for key, value in resource["metadata"].items() if key != "managedFields"}
    return {**resource, "metadata": metadata}


def _engine(resource: Object) -> str | None:
    return (resource["metadata"].get("labels") or {}).get(DIGEST_LABEL)


def _is_same(resource: Object, current: Object) -> bool:
    """A broken watch may report the next object of a name without the deletion of the last one."""
    return (resource["metadata"]["uid"], _engine(resource)) == (
        current["metadata"]["uid"],
        _engine(current),
    )


def _is_older(resource: Object, current: Object) -> bool:
    """A watch may lag behind the response to a write."""
    metadata, current_metadata = resource["metadata"], current["metadata"]
    return metadata["uid"] == current_metadata["uid"] and _version(metadata) < _version(
        current_metadata
    )


def _version(metadata: Object) -> int:
    """The resource version; later writes have greater ones."""
    return int(metadata["resourceVersion"])

"""What the watches told last: every object that a decision depends on, by kind and name."""

from collections import defaultdict
from collections.abc import Iterable

from agentworld_operator.resources.names import DIGEST_LABEL
from agentworld_pipelines.api_server import Object

OWN = ("Simulator", "SimulatorAlias", "TrainingSchedule")
"""Our resources, all of which are watched; of the others, what is an engine's."""
WATCHED = (*OWN, "Deployment", "Service", "ConfigMap", "PodDisruptionBudget", "Pod")


class Cache:
    """Objects as they were seen last. Older news than what is known is dropped."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in WATCHED}
        self._of_engine: dict[tuple[str, str], set[str]] = defaultdict(set)

    def put(self, kind: str, found: Object) -> list[Object]:
        """Takes in an object. Returns nothing where it is no news, else the object, after the one
        that it took the place of where that was another one, or another engine's.
        """
        found = _without_managers(found)
        name = found["metadata"]["name"]
        known = self._objects[kind].get(name)
        if known and _is_older(found, known):
            return []
        before = [known] if known and not _is_same(found, known) else []
        for each in before:
            self.drop(kind, each)
        self._objects[kind][name] = found
        if engine := _engine(found):
            self._of_engine[kind, engine].add(name)
        return [*before, found]

    def drop(self, kind: str, gone: Object) -> None:
        """Forgets an object, unless another one of its name is there by now."""
        name = gone["metadata"]["name"]
        known = self._objects[kind].get(name)
        if known is None or known["metadata"]["uid"] != gone["metadata"]["uid"]:
            return
        del self._objects[kind][name]
        if engine := _engine(known):
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

    def replace(self, kind: str, version: int, found: Iterable[Object]) -> list[Object]:
        """Takes in all objects as they were at a version; returns what is new, other, or gone."""
        listed = {each["metadata"]["name"]: each for each in found}
        others = [each for each in listed.values() if self._is_other(kind, each)]
        changed = [each for other in others for each in self.put(kind, other)]
        missing = [each for name, each in self._objects[kind].items() if name not in listed]
        # One that came after that version is not gone.
        gone = [each for each in missing if _version(each["metadata"]) <= version]
        for each in gone:
            self.drop(kind, each)
        return changed + gone

    def _is_other(self, kind: str, found: Object) -> bool:
        known = self._objects[kind].get(found["metadata"]["name"])
        version = found["metadata"]["resourceVersion"]
        return known is None or known["metadata"]["resourceVersion"] != version


def _without_managers(found: Object) -> Object:
    """Who wrote which field decides nothing here, and thousands of objects are kept."""
    metadata = {key: told for key, told in found["metadata"].items() if key != "managedFields"}
    return {**found, "metadata": metadata}


def _engine(found: Object) -> str | None:
    return (found["metadata"].get("labels") or {}).get(DIGEST_LABEL)


def _is_same(found: Object, known: Object) -> bool:
    """A broken watch may tell of the next one of a name, and not that the last one went."""
    return (found["metadata"]["uid"], _engine(found)) == (known["metadata"]["uid"], _engine(known))


def _is_older(found: Object, known: Object) -> bool:
    """A watch may lag behind what an answer to a write has told."""
    told, had = found["metadata"], known["metadata"]
    return told["uid"] == had["uid"] and _version(told) < _version(had)


def _version(metadata: Object) -> int:
    """Of a write; a later one has a greater number."""
    return int(metadata["resourceVersion"])

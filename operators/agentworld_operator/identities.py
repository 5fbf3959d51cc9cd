"""Which simulator each object is. Asked once, for an identity never changes."""

from collections import defaultdict
from collections.abc import Callable

from agentworld.cluster.api_resources import Object
from agentworld.cluster.names import short
from agentworld.cluster.records.simulator import Identity
from agentworld.records.base import Digest
from agentworld_operator.policy.identity import SimulatorIdentity, read_reference
from agentworld_operator.policy.problem import Problem


class Identities:
    """What was found out, by object and by engine."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        """`read` gets a manifest's file from where it is kept; it blocks."""
        self._read = read
        self._by_uid: dict[str, SimulatorIdentity] = {}
        self._names: dict[str, dict[str, str]] = defaultdict(dict)

    def learn(self, simulator: Object, identity: Identity) -> SimulatorIdentity | Problem:
        """Which one an object is; blocks. What is refused is looked at anew the next time.

        Raises StoreError or NotFound where a manifest cannot be read.
        """
        uid = simulator["metadata"]["uid"]
        if entry := self._by_uid.get(uid):
            return entry
        identity_or_refusal = self._read_identity(identity)
        if isinstance(identity_or_refusal, SimulatorIdentity):
            self._by_uid[uid] = identity_or_refusal
            self._names[short(identity_or_refusal.digest)][uid] = simulator["metadata"]["name"]
        return identity_or_refusal

    def forget(self, simulator: Object) -> None:
        """An object is gone."""
        uid = simulator["metadata"]["uid"]
        if entry := self._by_uid.pop(uid, None):
            engine = short(entry.digest)
            self._names[engine].pop(uid)
            if not self._names[engine]:
                del self._names[engine]

    def names(self, engine: str) -> list[str]:
        """Of the objects that are the simulator of an engine."""
        return list(self._names.get(engine, {}).values())

    def same(self, digest: Digest) -> list[str]:
        """Names of the objects that are this simulator."""
        return self.names(short(digest))

    def engine(self, simulator: Object) -> str | None:
        """The label of an object's engine, where it is known."""
        entry = self._by_uid.get(simulator["metadata"]["uid"])
        return short(entry.digest) if entry else None

    def _read_identity(self, identity: Identity) -> SimulatorIdentity | Problem:
        if identity.manifest:
            return SimulatorIdentity(identity.manifest.digest, identity.manifest)
        assert identity.reference is not None
        return read_reference(identity.reference, self._read(identity.reference.url))

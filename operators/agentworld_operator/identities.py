"""The simulator of each object, cached because an identity never changes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from agentworld.cluster.api_resources import Object
from agentworld.cluster.names import short
from agentworld.cluster.records.simulator import Identity
from agentworld.records.base import Digest
from agentworld_operator.policy.identity import SimulatorIdentity, read_reference
from agentworld_operator.policy.problem import Problem

_READERS = 8


class Identities:
    """Simulators by object and by engine."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        """`read` reads a manifest's file from its place; it blocks."""
        self._read = read
        self._by_uid: dict[str, SimulatorIdentity] = {}
        self._names: dict[str, dict[str, str]] = defaultdict(dict)
        # Threads of its own: other work must not wait for an object store that does not answer.
        self._executor = ThreadPoolExecutor(_READERS, "manifests")

    async def load(self, simulator: Object, identity: Identity) -> SimulatorIdentity | Problem:
        """Learns the simulator of an object in a thread, several at once."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self.learn, simulator, identity)

    def learn(self, simulator: Object, identity: Identity) -> SimulatorIdentity | Problem:
        """The simulator of an object; blocks.

        A refused manifest is read again next time. Raises StoreError or NotFound if a manifest
        cannot be read.
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
        """Removes a deleted object."""
        uid = simulator["metadata"]["uid"]
        if entry := self._by_uid.pop(uid, None):
            engine = short(entry.digest)
            self._names[engine].pop(uid)
            if not self._names[engine]:
                del self._names[engine]

    def names(self, engine: str) -> list[str]:
        """The names of the objects of an engine."""
        return list(self._names.get(engine, {}).values())

    def same(self, digest: Digest) -> list[str]:
        """The names of the objects of this simulator."""
        return self.names(short(digest))

    def engine(self, simulator: Object) -> str | None:
        """The label of an object's engine, if known."""
        entry = self._by_uid.get(simulator["metadata"]["uid"])
        return short(entry.digest) if entry else None

    def _read_identity(self, identity: Identity) -> SimulatorIdentity | Problem:
        if identity.manifest:
            return SimulatorIdentity(identity.manifest.digest, identity.manifest)
        assert identity.reference is not None
        return read_reference(identity.reference, self._read(identity.reference.url))

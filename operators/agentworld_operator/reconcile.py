"""One Simulator: observe, decide, build, apply, and one write of its status."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import ValidationError

from agentworld.engine.names import engine_name, short
from agentworld.errors import AgentworldError, ClusterError, NotFound, StoreError
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import EnginePin
from agentworld_operator.applying import Applier
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import Manifest, Pinned
from agentworld_operator.cluster import Cluster
from agentworld_operator.identities import Identities
from agentworld_operator.policy.conditions import timestamp
from agentworld_operator.policy.engine import observe_engine
from agentworld_operator.policy.identity import Identified, Refused, servable
from agentworld_operator.policy.rivals import rival
from agentworld_operator.policy.scaling import Scaled, scaled
from agentworld_operator.policy.simulator import SimulatorState, refusal_of, refused, served
from agentworld_operator.resources.simulator import Serving, SimulatorSpec, SimulatorStatus
from agentworld_operator.status import write_status
from agentworld_operator.watched import Cache
from agentworld_pipelines.api_server import Object


class Surroundings(NamedTuple):
    """What a reconciler is told about, beside the cluster."""

    service_url: str
    """Where agents open runs."""
    verifier_image: str
    pull_secrets: tuple[str, ...]
    clock: Callable[[], float]
    """Seconds that run forward."""
    open_episodes: Callable[[Digest], int | None]
    """Of a simulator; null where the service does not tell."""


class _Round(NamedTuple):
    """What is said of a Simulator, and what a later round may mend."""

    status: SimulatorStatus
    problem: AgentworldError | None = None


class Reconciler:
    """Makes Simulators so. What it remembers can be lost: the next round finds it out again."""

    def __init__(
        self, cluster: Cluster, cache: Cache, identities: Identities, surroundings: Surroundings
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._identities = identities
        self._applier = Applier(cluster, cache)
        self._surroundings = surroundings
        self._scaled: dict[str, Scaled] = {}

    async def reconcile(self, name: str) -> None:
        """One round for one Simulator; raises what a later round may mend."""
        simulator = self._cache.get("Simulator", name)
        if simulator is None or "deletionTimestamp" in simulator["metadata"]:
            self._scaled.pop(name, None)  # its children go with it
            return
        before = SimulatorStatus.model_validate(simulator.get("status") or {})
        now = timestamp(datetime.now(UTC))
        try:
            status, problem = await self._round(simulator, before, now)
        except (StoreError, NotFound) as error:  # tried again, and told meanwhile
            refusal, problem = Refused("Unreadable", str(error)), error
            status = refused(simulator["metadata"]["generation"], before, None, refusal, now)
        if status != before:
            change = "Simulator", simulator, before, status, now
            stored_simulator = await asyncio.to_thread(write_status, self._cluster, *change)
            self._cache.put("Simulator", stored_simulator)
        if problem:
            raise problem

    async def _round(self, simulator: Object, before: SimulatorStatus, now: str) -> _Round:
        generation = simulator["metadata"]["generation"]
        try:
            spec = SimulatorSpec.model_validate(simulator["spec"])
        except ValidationError as error:
            invalid = Refused("Invalid", f"spec.{first_problem(error)}")
            return _Round(refused(generation, before, None, invalid, now))
        identity = await asyncio.to_thread(self._identities.learn, simulator, spec.identity)
        if isinstance(identity, Refused):
            return _Round(refused(generation, before, None, identity, now))
        same = map(self._simulator, self._identities.same(identity.digest))
        refusal = servable(identity.manifest, spec.serving) or rival(
            simulator, identity.digest, [each for each in same if each]
        )
        if refusal:
            return _Round(refused(generation, before, identity.digest, refusal, now))
        state, problem = await self._serve(simulator, spec.serving, identity, before)
        return _Round(served(state, identity, now), problem)

    def _simulator(self, name: str) -> Object | None:
        return self._cache.get("Simulator", name)

    async def _serve(
        self, simulator: Object, serving: Serving, identity: Identified, before: SimulatorStatus
    ) -> tuple[SimulatorState, ClusterError | None]:
        """Applies what it is made of, and says what was seen and what the API server refused."""
        (digest, manifest), around = identity, self._surroundings
        deployment = self._cache.get("Deployment", engine_name(digest))
        engine = observe_engine(deployment, self._cache.of_engine("Pod", short(digest)))
        episodes = around.open_episodes(digest)
        replicas = self._replicas(simulator["metadata"]["name"], serving, engine.replicas, episodes)
        built: list[Manifest] = []
        if isinstance(manifest.engine, EnginePin) and serving.weights:
            own = manifest.engine, serving, serving.weights
            images = around.verifier_image, around.pull_secrets
            built = children(Pinned(digest, manifest, *own, *images), simulator, replicas)
        observations = (
            simulator["metadata"]["generation"],
            serving,
            before,
            engine,
            replicas,
            episodes,
        )
        state = SimulatorState(*observations, around.service_url)
        try:
            for child in built:
                await self._applier.apply(child)
        except ClusterError as error:
            if refusal := refusal_of(error):
                return state._replace(refusal=refusal), error
            raise
        return state, None

    def _replicas(self, name: str, serving: Serving, there: int, episodes: int | None) -> int:
        current = self._scaled.get(name, Scaled(there))
        now = self._surroundings.clock()
        self._scaled[name] = target = scaled(serving, current, episodes, now)
        return target.replicas

"""Reconciles Simulators: applies each engine's objects, and reports their state."""

from collections.abc import Callable, Iterable

from pydantic import ValidationError

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld.cluster.names import DIGEST_LABEL, engine_name, short
from agentworld.cluster.records.serving import Serving
from agentworld.cluster.records.simulator import SimulatorSpec, SimulatorStatus
from agentworld.errors import ClusterError, NotFound, StoreError
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import EnginePin
from agentworld_operator.applier import Applier
from agentworld_operator.cache import Cache
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import EnginePods, Manifest, PodSource
from agentworld_operator.controllers.controller import Outcome
from agentworld_operator.identities import Identities
from agentworld_operator.policy.engine import observe_engine
from agentworld_operator.policy.identity import SimulatorIdentity, servable
from agentworld_operator.policy.problem import Problem
from agentworld_operator.policy.queue import choose_queue
from agentworld_operator.policy.rivals import rival
from agentworld_operator.policy.scaling import Scale, choose_scale
from agentworld_operator.policy.simulator import (
    SimulatorState,
    refusal_of,
    refused_status,
    served_status,
)
from agentworld_operator.settings import OperatorSettings


class SimulatorReconciler:
    """Runs an engine for each valid Simulator, scaled by its open episodes."""

    kind = "Simulator"
    status_type = SimulatorStatus

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        identities: Identities,
        settings: OperatorSettings,
        *,
        open_episodes: Callable[[Digest], int | None],
        clock: Callable[[], float],
    ) -> None:
        """`open_episodes` counts those of a simulator; null if the service does not answer."""
        self._cache = cache
        self._identities = identities
        self._applier = Applier(cluster, cache)
        self._settings = settings
        self._open_episodes = open_episodes
        self._clock = clock
        self._scales: dict[str, Scale] = {}

    def affected_names(self, kind: str, resource: Object) -> Iterable[str]:
        """A Simulator itself, and all Simulators of its engine."""
        metadata = resource["metadata"]
        if kind != self.kind:
            labels = metadata.get("labels") or {}
            return self._identities.names(labels.get(DIGEST_LABEL, ""))
        engine = self._identities.engine(resource) or ""
        current = self._cache.get(kind, metadata["name"])
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            self._identities.forget(resource)
        return [metadata["name"], *self._identities.names(engine)]

    async def clean_up(self, name: str) -> Outcome[SimulatorStatus]:
        """Its children are deleted with it."""
        self._scales.pop(name, None)
        return Outcome()

    async def reconcile(
        self, simulator: Object, before: SimulatorStatus, now: str
    ) -> Outcome[SimulatorStatus]:
        """Applies its engine, or reports why there is none.

        Without a readable identity, its last digest stays: it never changes, and guards a deletion.
        """
        generation = simulator["metadata"]["generation"]
        try:
            spec = SimulatorSpec.model_validate(simulator["spec"])
            identity = await self._identities.load(simulator, spec.identity)
        except ValidationError as error:
            invalid = Problem("Invalid", f"spec.{first_problem(error)}")
            return Outcome(refused_status(generation, before, before.digest, invalid, now))
        except (StoreError, NotFound) as error:
            unreadable = Problem("Unreadable", str(error))
            return Outcome(
                refused_status(generation, before, before.digest, unreadable, now), error
            )
        if isinstance(identity, Problem):
            return Outcome(refused_status(generation, before, before.digest, identity, now))
        refusal = servable(identity.manifest, spec.serving) or self._rival(simulator, identity)
        if refusal:
            return Outcome(refused_status(generation, before, identity.digest, refusal, now))
        state, problem = await self._serve(simulator, spec.serving, identity, before)
        # With autoscaling, a removal depends on time, not on a change.
        look_again_seconds = self._settings.ask_seconds if spec.serving.bounds else None
        return Outcome(served_status(state, identity, now), problem, look_again_seconds)

    def _rival(self, simulator: Object, identity: SimulatorIdentity) -> Problem | None:
        names = self._identities.same(identity.digest)
        rivals = [self._cache.get(self.kind, name) for name in names]
        return rival(simulator, identity.digest, [other for other in rivals if other])

    async def _serve(
        self,
        simulator: Object,
        serving: Serving,
        identity: SimulatorIdentity,
        before: SimulatorStatus,
    ) -> tuple[SimulatorState, ClusterError | None]:
        """Applies its objects; returns the observed state and the API server's refusal."""
        digest = identity.digest
        deployment = self._cache.get("Deployment", engine_name(digest))
        engine = observe_engine(deployment, self._cache.of_engine("Pod", short(digest)))
        episodes = self._open_episodes(digest)
        replicas = self._replicas(simulator["metadata"]["name"], serving, engine.replicas, episodes)
        queue, kept_queue = choose_queue(serving.queue, deployment)
        serving = serving.model_copy(update={"queue": queue})
        state = SimulatorState(
            generation=simulator["metadata"]["generation"],
            serving=serving,
            status=before,
            engine=engine,
            target_replicas=replicas,
            open_episodes=episodes,
            url=self._settings.service_url,
            kept_queue=kept_queue,
        )
        try:
            for child in self._children(simulator, serving, identity, replicas):
                await self._applier.apply(child)
        except ClusterError as error:
            if refusal := refusal_of(error):
                return state._replace(refusal=refusal), error
            raise
        return state, None

    def _children(
        self, simulator: Object, serving: Serving, identity: SimulatorIdentity, replicas: int
    ) -> list[Manifest]:
        """None for a third-party endpoint."""
        digest, manifest = identity
        if not isinstance(manifest.engine, EnginePin) or not serving.weights:
            return []
        own = manifest.engine, serving, serving.weights
        settings = self._settings
        pods = settings.engine_pods or EnginePods()
        release = settings.verifier_image, settings.pull_secrets, pods
        return children(PodSource(digest, manifest, *own, *release), simulator, replicas)

    def _replicas(
        self, name: str, serving: Serving, current_replicas: int, episodes: int | None
    ) -> int:
        current = self._scales.get(name, Scale(current_replicas))
        self._scales[name] = target = choose_scale(serving, current, episodes, self._clock())
        return target.replicas

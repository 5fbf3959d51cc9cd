"""An engine in a queue of Kueue, whose webhook refuses some changes of its Deployment."""

import asyncio

from agentworld.cluster.records.simulator import SimulatorStatus
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.simulator import SimulatorReconciler
from agentworld_operator.identities import Identities
from agentworld_operator.settings import OperatorSettings
from fakes import kueue
from make.simulator import NOW, simulator, there

SETTINGS = OperatorSettings(
    namespace="n", identity="me", service_url="http://s", verifier_image="v"
)


class QueuedEngine:
    """A cluster with Kueue's integration of Deployments, and one engine."""

    def __init__(self):
        self.cache, self.ready, self.version, self.deployment = Cache(), 0, 0, None
        self.reconciler = SimulatorReconciler(
            self,
            self.cache,
            Identities(lambda _: b""),
            SETTINGS,
            open_episodes=lambda _: 0,
            clock=lambda: 0.0,
        )

    def apply(self, built):
        if built["kind"] == "Deployment":
            if current := self.cache.get("Deployment", built["metadata"]["name"]):
                kueue.check_update(current, built)
            self.deployment = built
        return self._there(built)

    def become_ready(self, ready):
        self.ready = ready
        self.cache.put("Deployment", self._there(self.deployment))

    def _there(self, built):
        self.version += 1
        return there(built, self.version, status={"readyReplicas": self.ready})

    def serve(self, **serving):
        """Runs one round, and returns the reason of each condition."""
        resource = there(simulator(**serving))
        outcome = asyncio.run(self.reconciler.reconcile(resource, SimulatorStatus(), NOW))
        assert outcome.problem is None
        return {condition.type: condition.reason for condition in outcome.status.conditions}

    @property
    def replicas_and_queue(self):
        queue = self.deployment["metadata"]["labels"].get(kueue.QUEUE)
        return self.deployment["spec"]["replicas"], queue


def test_an_engine_changes_its_queue_only_when_no_replica_is_ready():
    engine = QueuedEngine()
    assert engine.serve(queue="a", replicas=2)["Degraded"] == "AsWanted"
    engine.become_ready(2)
    reasons = engine.serve(queue="b", replicas=1)
    assert (reasons["Degraded"], reasons["Ready"]) == ("QueueKept", "Serving")
    assert engine.replicas_and_queue == (1, "a")
    engine.serve(queue="b", suspend=True)
    assert engine.replicas_and_queue == (0, "a")
    engine.become_ready(0)
    assert engine.serve(queue="b", suspend=True)["Degraded"] == "AsWanted"
    assert engine.replicas_and_queue == (0, "b")


def test_an_engine_whose_spec_drops_the_queue_is_scaled_in_its_old_queue():
    engine = QueuedEngine()
    engine.serve(queue="a")
    assert engine.serve(replicas=3)["Degraded"] == "QueueKept"
    assert engine.replicas_and_queue == (3, "a")

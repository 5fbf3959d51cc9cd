"""Changes that an operator finds by listing everything, because watches missed them."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kopf
import pytest

from agentworld.cluster.client import ObjectList
from agentworld.cluster.records.simulator import Identity, SimulatorStatus
from agentworld.engine.process import LOOPBACK
from agentworld.errors import ClusterError
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.controller import Outcome
from agentworld_operator.controllers.simulator import SimulatorReconciler
from agentworld_operator.identities import Identities
from agentworld_operator.operator import Operator, Reconcilers
from agentworld_operator.settings import OperatorSettings
from make.simulator import pinned_manifest, simulator
from waiting import DEADLINE


class Listing:
    """A cluster that has these Simulators, and an engine."""

    namespace = "here"

    def __init__(self, *simulators, failures=0, status=0):
        self._simulators = list(simulators)
        self._failures = failures
        self._status = status

    def all(self, kind, _selector):
        if self._failures:
            self._failures -= 1
            raise ClusterError("the API server does not answer this", status=self._status)
        return ObjectList(9, {"Simulator": self._simulators, "Deployment": [ENGINE]}.get(kind, []))


class Silent:
    """A service that counts no episodes, and records requests."""

    is_asked = False

    async def ask(self, _changed):
        self.is_asked = True


class Idle:
    """Reconciles nothing of a kind, and has a server without recurring runs."""

    def __init__(self, kind):
        self.kind = kind

    def affected_names(self, kind, resource):
        return [resource["metadata"]["name"]] if kind == self.kind else []

    async def clean_up(self, _name):
        return Outcome()

    async def ask_server(self):
        return []

    async def find_names_without_object(self):
        return []


class Refusing(BaseHTTPRequestHandler):
    """An API server that rejects every request."""

    def do_GET(self):
        self.send_error(400)

    def log_message(self, *_arguments):
        """Logs no request."""


def build_simulator(seed, version, name="one"):
    resource = simulator(name, seed)
    resource["metadata"] |= {"uid": f"uid-{name}-{seed}", "resourceVersion": str(version)}
    return resource


ENGINE = {"metadata": {"name": "engine", "uid": "uid-engine", "resourceVersion": "3"}}
DIGEST = pinned_manifest("one").digest


SETTINGS = OperatorSettings(
    namespace="here",
    identity="me",
    service_url="http://127.0.0.1:1",
    verifier_image="verifier",
    look_seconds=60,
    ask_seconds=60,
)


def operator(cluster, cache, identities, simulators, episodes=None):
    reconcilers = Reconcilers(simulators, Idle("SimulatorAlias"), Idle("TrainingSchedule"))
    return Operator(cluster, cache, identities, episodes or Silent(), reconcilers)


def test_a_recreated_simulator_does_not_inherit_the_identity_of_the_old_simulator():
    cache, identities = Cache(), Identities(lambda _: b"")
    old_simulator = build_simulator("one", 1)
    cache.put("Simulator", old_simulator)
    identities.learn(old_simulator, Identity(manifest=pinned_manifest("one")))
    cluster = Listing(build_simulator("two", 5))
    simulators = SimulatorReconciler(
        cluster, cache, identities, SETTINGS, open_episodes=lambda _: None, clock=lambda: 0.0
    )
    asyncio.run(operator(cluster, cache, identities, simulators).list_resources())
    assert identities.same(DIGEST) == []


@pytest.fixture
def login():
    """A login to an API server that rejects every request."""
    server = ThreadingHTTPServer((LOOPBACK, 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://{LOOPBACK}:{server.server_port}"
    yield lambda **_: kopf.ConnectionInfo(server=url)
    server.shutdown()
    server.server_close()


@pytest.mark.waits
def test_reconciling_waits_for_the_full_list_and_ended_watches_raise_an_error(login):
    cache, identities, episodes = Cache(), Identities(lambda _: b""), Silent()
    rounds = []

    class Working(Idle):
        status_type = SimulatorStatus

        async def reconcile(self, _simulator, _before, _now):
            engine = cache.get("Deployment", "engine")
            rounds.append((engine, sorted(identities.same(DIGEST)), episodes.is_asked))
            return Outcome()

    invalid_simulator = build_simulator("one", 3, "wrong")
    invalid_simulator["spec"] = {"identity": {}}
    cluster = Listing(
        build_simulator("one", 1), build_simulator("one", 2, "twin"), invalid_simulator, failures=1
    )
    replica = operator(cluster, cache, identities, Working("Simulator"), episodes)
    with pytest.raises(ClusterError, match="the watches ended"):
        asyncio.run(replica.run(login, SETTINGS))
    assert rounds == [(ENGINE, ["one", "twin"], True)] * 3


def test_a_new_leader_reads_manifests_at_once():
    """Each read waits for the other one, as an object store may be slow."""
    both_read = threading.Barrier(2)

    def read(_url):
        both_read.wait(DEADLINE)
        return pinned_manifest("one").canonical

    class Ending(Silent):
        async def ask(self, _changed):
            raise ClusterError("all manifests are read")

    identities, simulators = Identities(read), [build_simulator("one", 1, name) for name in "ab"]
    for resource in simulators:
        reference = {"url": "s3://manifests/one", "digest": DIGEST}
        resource["spec"] = {"identity": {"reference": reference}}
    replica = operator(Listing(*simulators), Cache(), identities, Idle("Simulator"), Ending())
    with pytest.raises(ClusterError, match="all manifests are read"):
        asyncio.run(replica.run(None, SETTINGS))
    assert sorted(identities.same(DIGEST)) == ["a", "b"]


def test_an_operator_without_list_rights_ends_with_the_reason():
    cluster = Listing(failures=10**6, status=403)
    replica = operator(cluster, Cache(), Identities(lambda _: b""), Idle("Simulator"))
    with pytest.raises(ClusterError, match="does not answer this"):
        asyncio.run(replica.run(None, SETTINGS))

"""What an operator finds out where it looks at everything, past what the watches told."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kopf
import pytest
from kopf._cogs.structs.references import Insights, Resource

from agentworld.engine.process import LOOPBACK
from agentworld.errors import ClusterError
from agentworld_operator.cluster import ObjectList
from agentworld_operator.watches import resource_selector
from agentworld_operator.identities import Identities
from agentworld_operator.resources.simulator import Identity
from agentworld_operator.operator import Running, check_watched
from agentworld_operator.cache import WATCHED, Cache
from make.simulator import pinned_manifest, simulator


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


class Idle:
    """Works on nothing, keeps no names, and tells of no episodes but that it was asked."""

    asked = False

    async def reconcile(self, _name):
        return None

    def changed(self, _kind, _name):
        return None

    async def run(self, *_seconds):
        return None

    async def ask(self, _changed):
        self.asked = True


class Refusing(BaseHTTPRequestHandler):
    """An API server that takes no request for one."""

    def do_GET(self):
        self.send_error(400)

    def log_message(self, *_arguments):
        """Says nothing of its requests."""


def made(seed, version, name="one"):
    found = simulator(name, seed)
    found["metadata"] |= {"uid": f"uid-{name}-{seed}", "resourceVersion": str(version)}
    return found


ENGINE = {"metadata": {"name": "engine", "uid": "uid-engine", "resourceVersion": "3"}}
DIGEST = pinned_manifest("one").digest


def test_the_next_one_of_a_name_is_not_taken_for_the_one_that_went_unseen():
    cache, identities = Cache(), Identities(lambda _: b"")
    old = made("one", 1)
    cache.put("Simulator", old)
    identities.learn(old, Identity(manifest=pinned_manifest("one")))
    idle = Idle()
    running = Running(Listing(made("two", 5)), cache, identities, idle, None, idle, idle)
    asyncio.run(running.look())
    assert identities.same(DIGEST) == []


@pytest.fixture
def login():
    """To an API server that takes no request for one."""
    server = ThreadingHTTPServer((LOOPBACK, 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://{LOOPBACK}:{server.server_port}"
    yield lambda **_: kopf.ConnectionInfo(server=url)
    server.shutdown()
    server.server_close()


@pytest.mark.waits
def test_nothing_is_done_before_all_is_known_and_who_cannot_watch_says_so(login):
    cache, identities, idle, known = Cache(), Identities(lambda _: b""), Idle(), []

    class Working(Idle):
        async def reconcile(self, _name):
            known.append((cache.get("Deployment", "engine"), identities.same(DIGEST), idle.asked))

    wrong = made("one", 3, "wrong")
    wrong["spec"] = {"identity": {}}
    cluster = Listing(made("one", 1), made("one", 2, "twin"), wrong, failures=1)
    running = Running(cluster, cache, identities, Working(), idle, idle, idle)
    with pytest.raises(ClusterError, match="the watches ended"):
        asyncio.run(running.run(login, look_seconds=60, ask_seconds=60))
    assert known == [(ENGINE, ["one", "twin"], True)] * 3


def test_who_may_not_look_ends_with_the_reason_and_does_not_wait():
    cluster = Listing(failures=10**6, status=403)
    running = Running(cluster, Cache(), Identities(lambda _: b""), Idle(), Idle(), Idle(), Idle())
    with pytest.raises(ClusterError, match="does not answer this"):
        asyncio.run(running.run(None, look_seconds=60, ask_seconds=60))


@pytest.mark.parametrize("without", [None, "SimulatorAlias", "Pod"])
def test_who_was_not_told_of_all_that_is_to_be_watched_begins_anew(without):
    """As by an API server that has just started."""
    insights = Insights()
    for kind in WATCHED:
        if kind != without:
            insights.watched_resources.add(Resource(*resource_selector(kind)))
    insights.ready_resources.set()
    if without is None:
        asyncio.run(check_watched(insights))
    else:
        with pytest.raises(ClusterError, match=f"does not tell of {without}; begin anew"):
            asyncio.run(check_watched(insights))

"""Aliases while objects bypass the webhook, with a real API server.

The operator is a separate process; the service is a cluster's, with many simulators.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import httpx
import pytest

import make.many
import make.operator
import make.service
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.engine.fake import FakeEngine
from agentworld.engine.process import free_port
from agentworld.errors import ClusterError
from agentworld.ledger import Ledger
from agentworld.serving.simulators.base import ConnectedSimulator
from agentworld.serving.simulators.cluster import ClusterSimulators, cluster_reader
from agentworld.storage.objects import ObjectStore
from agentworld_operator.policy.alias import OPERATOR_ACTOR
from make import records
from make.guarded import Guarded
from make.simulator import alias, pinned_manifest
from waiting import wait_for

pytestmark = pytest.mark.waits

ONE, TWO = pinned_manifest("one").digest, pinned_manifest("two").digest
UNGATED = {"simulator": "two", "gate": None, "report": None}
"""A spec that asks for another simulator and shows nothing for it."""


class Names(Guarded):
    """A guarded namespace whose service a test starts and stops."""

    def __init__(self, namespace, start, folder, account):
        self.store = folder / "store"
        self.store.mkdir()
        self._account = account
        super().__init__(namespace, start, folder, "")

    @contextmanager
    def serve(self) -> Iterator[None]:
        """A service with the store's ledger, at a new address, while the block runs."""
        objects = ObjectStore(str(self.store / "objects"))
        cluster = ClusterSimulators(
            cluster_reader(self.name, self._account),
            objects,
            make.service.ledger(self.store),
            lambda manifest: ConnectedSimulator(manifest, FakeEngine(make.service.shell), dict),
        )
        app = make.many.app(self.store, cluster, kind=partial(Ledger, objects=objects))
        with make.service.listening(app) as self.url:
            yield

    def begin(self, **settings):
        """Points `stable` at the first of two simulators, through the webhook."""
        self.run(look_seconds=1, **settings)
        self.guard()
        self.use("one", "two")
        self.namespace.create(alias())
        wait_for(lambda: self.recorded == ("True", "AsAsked"))

    def bypass(self):
        """Deletes the webhook, and waits until the API server calls none."""
        self.namespace.delete("ValidatingWebhookConfiguration", f"agentworld-{self.name}")
        wait_for(lambda: not self._is_refused("nobody"))

    def refuse(self):
        """Adds a second webhook that refuses what the operator's admits."""
        configuration = self.configuration
        configuration["metadata"]["name"] += "-other"
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{free_port()}"
        self.namespace.create(configuration)
        wait_for(lambda: self._is_refused("two"))

    def _is_refused(self, simulator):
        """Whether a webhook refuses this simulator, or does not answer."""
        path = API_RESOURCES["SimulatorAlias"].path(self.name, "stable")
        body, dry = {"spec": {"simulator": simulator}}, [("dryRun", "All")]
        try:
            self.namespace.call("PATCH", path, body, query=dry)
        except ClusterError:
            return True
        return False

    def wish(self, **spec):
        self.namespace.patch("SimulatorAlias", "stable", {"spec": spec})

    @property
    def recorded(self):
        return self.namespace.conditions("stable", "SimulatorAlias").get("Recorded")

    @property
    def opened(self):
        """The simulator of a new run that names the alias."""
        opening = {"agent": "a", "starting_weights": records.digest("starting")}
        answer = httpx.post(f"{self.url}/runs", json={**opening, "simulator": "stable"})
        return answer.json()["run"]["simulator"] if answer.is_success else answer.status_code

    @property
    def moves(self):
        return [
            (change["set_by"], change["ended"] or change["simulator"]) for change in self.history()
        ]


@pytest.fixture
def names(kubernetes, namespace, start, tmp_path) -> Iterator[Names]:
    account = make.operator.kubeconfig(kubernetes, namespace, "agentworld-service")
    yield Names(namespace, start, tmp_path, account)
    for configuration in namespace.all("ValidatingWebhookConfiguration").objects:
        if namespace.namespace in configuration["metadata"]["name"]:
            namespace.delete("ValidatingWebhookConfiguration", configuration["metadata"]["name"])


def test_an_alias_edited_without_an_operator_is_reported_and_does_not_move(names):
    with names.serve():
        names.begin()
        names.operators["first"].kill()
        with pytest.raises(ClusterError, match="failed calling webhook"):
            names.wish(**UNGATED)
        names.bypass()
        names.wish(**UNGATED)
        assert names.opened == ONE
        names.namespace.end_lease()
        names.run("second")
        wait_for(lambda: names.recorded == ("False", "NotAsked"))
        assert names.opened == ONE
        assert names.namespace.get("SimulatorAlias", "stable")["status"]["digest"] == ONE
        assert names.moves == [("admin", ONE)]
        events = names.namespace.all("Event").objects
        assert "NotAsked" in {event["reason"] for event in events if event["type"] == "Warning"}


def test_an_alias_edited_without_a_service_does_not_move_when_the_service_returns(names):
    with names.serve():
        names.begin()
    with pytest.raises(ClusterError, match="the simulator service does not answer"):
        names.wish(**UNGATED)
    names.bypass()
    names.wish(**UNGATED)
    with names.serve():
        assert (names.opened, names.moves) == (ONE, [("admin", ONE)])


def test_an_alias_edited_and_reverted_between_rounds_is_reported_and_does_not_move(names):
    with names.serve():
        names.begin()
        names.bypass()
        process = names.operators["first"].process
        process.send_signal(signal.SIGSTOP)
        names.wish(simulator="two")
        assert names.opened == ONE
        names.wish(simulator="one")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: names.recorded == ("False", "NotAsked"))
        assert (names.opened, names.moves) == (ONE, [("admin", ONE)])


def test_an_alias_deleted_without_an_operator_is_ended_by_the_next_operator(names):
    with names.serve():
        names.begin()
        names.operators["first"].kill()
        names.namespace.delete("SimulatorAlias", "stable")  # no operator runs
        assert names.opened == ONE
        names.namespace.end_lease()
        names.run("second", webhook_settle_seconds=1)
        wait_for(lambda: names.moves == [("admin", ONE), (OPERATOR_ACTOR, True)])
        assert names.opened == 404


def test_a_recorded_move_refused_by_the_api_server_is_reverted(names):
    with names.serve():
        names.begin(webhook_settle_seconds=5)
        names.refuse()
        with pytest.raises(ClusterError, match="failed calling webhook"):
            names.wish(simulator="two")
        wait_for(lambda: names.moves == [("admin", ONE), ("admin", TWO), (OPERATOR_ACTOR, ONE)])
        wait_for(lambda: names.recorded == ("True", "Returned"))
        assert names.opened == ONE


def test_a_request_is_recorded_once_with_its_object_and_generation(names):
    with names.serve():
        names.begin()
        names.wish(simulator="two")
        names.wish(simulator="two")
        names.namespace.delete("SimulatorAlias", "stable")
        uids, generations = zip(
            *(change["request"].split("/") for change in names.history()), strict=True
        )
        assert (len(set(uids)), generations) == (1, ("1", "2", "2"))
        assert names.moves == [("admin", ONE), ("admin", TWO), ("admin", True)]

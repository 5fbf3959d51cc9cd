"""A service of a cluster's simulators: access to simulators, by the cluster's objects."""

import pytest
from starlette.testclient import TestClient

import make.access
import make.ledger
import make.many
from agentworld.engine.fake import FakeEngine
from agentworld.errors import ClusterError
from agentworld.records.statements.alias import Canary, gets_canary
from agentworld.serving.simulators.base import ConnectedSimulator
from agentworld.serving.simulators.cluster import ClusterSimulators
from agentworld.storage.objects import ObjectStore
from make import records
from make.cluster import CANARY, STABLE, Cluster

pytestmark = pytest.mark.compute

OPENING = {"agent": "a", "starting_weights": records.digest("starting")}
NAMES = pytest.mark.parametrize("name", ["world", STABLE.digest])


@pytest.fixture
def cluster():
    told = Cluster()
    yield told
    told.answers.set()


@pytest.fixture
def aliases(tmp_path):
    """The aliases in the ledger that all replicas share."""
    return make.ledger.aliases(tmp_path, world=STABLE.digest)


@pytest.fixture
def start(cluster, aliases, tmp_path):
    """Starts a replica, with the tenants of an access file."""
    started = []

    def one():
        def connect(manifest):
            engine = FakeEngine(lambda messages: f"{messages[-1]['content']}\n[0] ~")
            return ConnectedSimulator(manifest, engine)

        objects = ObjectStore(str(tmp_path / "objects"))
        known = ClusterSimulators(cluster.read, objects, aliases, connect)
        app = make.many.app(tmp_path, known, make.access.Checked(tmp_path))
        http = TestClient(app, "http://localhost", raise_server_exceptions=False)
        http.__enter__()
        started.append(http)
        return http

    yield one
    for http in started:
        http.__exit__()


@pytest.fixture
def http(start):
    return start()


def ask(http, path, who="acme-agent", key=None, **body):
    headers = {"authorization": make.access.bearer(who)}
    if key:
        headers["idempotency-key"] = key
    return http.post(path, json=body, headers=headers)


def opened(http, name="world", who="acme-agent", key=None):
    return ask(http, "/runs", who, key, **OPENING, simulator=name)


def episode(http, run):
    return ask(http, "/episodes", run=run).json()["episode"]


def step(http, name, number):
    return ask(http, "/steps", episode=name, action=f"echo {number}", step=number)


@NAMES
def test_a_tenant_without_access_to_a_simulator_cannot_open_a_run(http, cluster, name):
    cluster.change("stable", "rival", "third")
    refused = opened(http, name)
    told = refused.json()["error"]
    assert (refused.status_code, told["kind"], told["retryable"]) == (403, "forbidden", False)
    assert "Simulator stable" in told["message"]
    assert "acme" in told["message"]
    assert not {"rival", "third"} & set(told["message"].replace(",", " ").split())
    assert http.app.state.app_state.episode_store.ledger.runs() == []
    assert opened(http, name, "rival-agent").status_code == 200


def meaning(http, alias="world", who="acme-agent"):
    headers = {"authorization": make.access.bearer(who)}
    return http.get(f"/aliases/{alias}/simulator", headers=headers)


def test_an_agent_resolves_an_alias_to_its_simulator_and_not_its_canary(http, aliases):
    canary = Canary(simulator=CANARY.digest, percent=99)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    key = next(key for key in (f"{n:032}" for n in range(9)) if gets_canary("world", key, 99))
    assert meaning(http).json() == STABLE.digest
    assert opened(http, key=key).json()["run"]["simulator"] == CANARY.digest
    assert meaning(http, "nobody").status_code == 404
    assert meaning(http, "Nobody").status_code == 422


def test_an_alias_is_not_resolved_for_a_tenant_without_access(http, cluster):
    cluster.change("stable", "rival")
    refused = meaning(http)
    assert (refused.status_code, refused.json()) == (403, opened(http).json())
    assert STABLE.digest not in refused.text
    assert meaning(http, who="rival-agent").json() == STABLE.digest


@pytest.mark.parametrize("who", ["acme-operator", "office-auditor"])
def test_operators_and_auditors_cannot_resolve_an_alias(http, who):
    assert meaning(http, who=who).status_code == 403


def test_a_run_token_cannot_resolve_an_alias(http):
    token = opened(http).json()["token"]
    refused = http.get("/aliases/world/simulator", headers={"authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "input")


@NAMES
def test_an_open_run_stays_usable_after_its_tenant_loses_access(http, start, cluster, name):
    run = opened(http, name, key="1" * 32).json()["run"]["id"]
    first = episode(http, run)
    cluster.change("stable", "rival")
    assert opened(http, name).status_code == 403
    assert opened(http, name, key="1" * 32).json()["run"]["id"] == run
    for replica in (http, start()):
        assert step(replica, first, 1).status_code == 200
        assert step(replica, episode(replica, run), 1).status_code == 200


@pytest.mark.parametrize("way", ["gone", "unreachable"])
def test_open_runs_continue_without_the_custom_resource_or_the_cluster_api(
    http, start, cluster, way
):
    run = opened(http).json()["run"]["id"]
    first = episode(http, run)
    if way == "gone":
        cluster.objects.clear()
    else:
        cluster.failing = ClusterError("the cluster did not review")
    cluster.reads()
    for number, replica in enumerate((http, start()), 1):
        assert step(replica, first, number).json()["observation"] == f"echo {number}\n[0] ~"
        assert step(replica, episode(replica, run), 1).status_code == 200
    assert not cluster.reads()


@NAMES
@pytest.mark.parametrize(
    ("way", "status", "kind", "retryable"),
    [("gone", 404, "not-found", False), ("unreachable", 503, "unavailable", True)],
)
def test_no_new_run_is_opened_without_the_custom_resource_or_the_cluster_api(
    http, cluster, name, way, status, kind, retryable
):
    opened(http, name)
    if way == "gone":
        del cluster.objects["simulators/stable"]
    else:
        cluster.failing = ClusterError("the cluster did not review")
    refused = opened(http, name)
    told = refused.json()["error"]
    assert (refused.status_code, told["kind"], told["retryable"]) == (status, kind, retryable)


def test_a_hanging_cluster_api_does_not_block_steps(http, cluster):
    first = episode(http, opened(http).json()["run"]["id"])
    cluster.answers.clear()
    asked = [http.portal.start_task_soon(wanting, http) for _ in range(40)]
    for number in range(1, 4):
        http.app.state.app_state.episode_store.drop(first)  # so that the ledger is read, too
        assert step(http, first, number).status_code == 200
    assert not any(each.done() for each in asked)
    cluster.answers.set()
    assert {each.result(60) for each in asked} == {STABLE.digest}


async def wanting(http):
    """A run's opening, up to the request to the cluster."""
    from agentworld.serving.simulators.base import SimulatorRequest

    return await http.app.state.app_state.simulators.resolve(
        SimulatorRequest(STABLE.digest, "run", "acme")
    )


def test_the_run_id_decides_between_the_simulator_and_its_canary(http, aliases):
    canary = Canary(simulator=CANARY.digest, percent=30)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    for number in range(20):
        key = f"{number:032}" if number % 2 else None
        run = opened(http, key=key).json()["run"]
        wanted = CANARY if gets_canary("world", run["id"], 30) else STABLE
        assert run["simulator"] == wanted.digest

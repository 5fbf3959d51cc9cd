"""A service of a cluster's simulators: custom resources decide which tenants have access."""

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
    new_cluster = Cluster()
    yield new_cluster
    new_cluster.answers.set()


@pytest.fixture
def ledger(tmp_path):
    """The ledger that all replicas share."""
    return make.ledger.with_aliases(tmp_path, world=STABLE.digest)


@pytest.fixture
def start(cluster, ledger, tmp_path):
    """Starts a replica, with the tenants of an access file."""
    clients = []

    def start_replica():
        def connect(manifest):
            engine = FakeEngine(lambda messages: f"{messages[-1]['content']}\n[0] ~")
            return ConnectedSimulator(manifest, engine)

        objects = ObjectStore(str(tmp_path / "objects"))
        simulators = ClusterSimulators(cluster.read, objects, ledger, connect)
        app = make.many.app(tmp_path, simulators, make.access.Checked(tmp_path))
        http = TestClient(app, "http://localhost", raise_server_exceptions=False)
        http.__enter__()
        clients.append(http)
        return http

    yield start_replica
    for http in clients:
        http.__exit__()


@pytest.fixture
def http(start):
    return start()


def ask(http, path, caller="acme-agent", key=None, **body):
    headers = {"authorization": make.access.bearer(caller)}
    if key:
        headers["idempotency-key"] = key
    return http.post(path, json=body, headers=headers)


def open_run(http, name="world", caller="acme-agent", key=None):
    return ask(http, "/runs", caller, key, **OPENING, simulator=name)


def episode(http, run):
    return ask(http, "/episodes", run=run).json()["episode"]


def step(http, name, number):
    return ask(http, "/steps", episode=name, action=f"echo {number}", step=number)


@NAMES
def test_a_tenant_without_access_to_a_simulator_cannot_open_a_run(http, cluster, name):
    cluster.change("stable", "rival", "third")
    answer = open_run(http, name)
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"], error["retryable"]) == (403, "forbidden", False)
    assert "Simulator stable" in error["message"]
    assert "acme" in error["message"]
    assert not {"rival", "third"} & set(error["message"].replace(",", " ").split())
    assert http.app.state.app_state.episode_store.ledger.runs() == []
    assert open_run(http, name, "rival-agent").status_code == 200


def resolve(http, alias="world", caller="acme-agent"):
    headers = {"authorization": make.access.bearer(caller)}
    return http.get(f"/aliases/{alias}/simulator", headers=headers)


def test_an_agent_resolves_an_alias_to_its_simulator_and_not_its_canary(http, ledger):
    canary = Canary(simulator=CANARY.digest, percent=99)
    ledger.aliases.set("world", STABLE.digest, "ada", canary=canary)
    key = next(key for key in (f"{n:032}" for n in range(9)) if gets_canary("world", key, 99))
    assert resolve(http).json() == STABLE.digest
    assert open_run(http, key=key).json()["run"]["simulator"] == CANARY.digest
    assert resolve(http, "nobody").status_code == 404
    assert resolve(http, "Nobody").status_code == 422


def test_an_alias_is_not_resolved_for_a_tenant_without_access(http, cluster):
    cluster.change("stable", "rival")
    answer = resolve(http)
    assert (answer.status_code, answer.json()) == (403, open_run(http).json())
    assert STABLE.digest not in answer.text
    assert resolve(http, caller="rival-agent").json() == STABLE.digest


@pytest.mark.parametrize("caller", ["acme-operator", "office-auditor"])
def test_operators_and_auditors_cannot_resolve_an_alias(http, caller):
    assert resolve(http, caller=caller).status_code == 403


def test_a_run_token_cannot_resolve_an_alias(http):
    token = open_run(http).json()["token"]
    answer = http.get("/aliases/world/simulator", headers={"authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "input")


@NAMES
def test_an_open_run_stays_usable_after_its_tenant_loses_access(http, start, cluster, name):
    run = open_run(http, name, key="1" * 32).json()["run"]["id"]
    first = episode(http, run)
    cluster.change("stable", "rival")
    assert open_run(http, name).status_code == 403
    assert open_run(http, name, key="1" * 32).json()["run"]["id"] == run
    for replica in (http, start()):
        assert step(replica, first, 1).status_code == 200
        assert step(replica, episode(replica, run), 1).status_code == 200


@pytest.mark.parametrize("fault", ["gone", "unreachable"])
def test_open_runs_continue_without_the_custom_resource_or_the_cluster_api(
    http, start, cluster, fault
):
    run = open_run(http).json()["run"]["id"]
    first = episode(http, run)
    if fault == "gone":
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
    ("fault", "status", "kind", "retryable"),
    [("gone", 404, "not-found", False), ("unreachable", 503, "unavailable", True)],
)
def test_no_new_run_is_opened_without_the_custom_resource_or_the_cluster_api(
    http, cluster, name, fault, status, kind, retryable
):
    open_run(http, name)
    if fault == "gone":
        del cluster.objects["simulators/stable"]
    else:
        cluster.failing = ClusterError("the cluster did not review")
    answer = open_run(http, name)
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"], error["retryable"]) == (status, kind, retryable)


def test_a_hanging_cluster_api_does_not_block_steps(http, cluster):
    first = episode(http, open_run(http).json()["run"]["id"])
    cluster.answers.clear()
    tasks = [http.portal.start_task_soon(resolve_for_run, http) for _ in range(40)]
    for number in range(1, 4):
        http.app.state.app_state.episode_store.drop(first)  # so that the ledger is read, too
        assert step(http, first, number).status_code == 200
    assert not any(task.done() for task in tasks)
    cluster.answers.set()
    assert {task.result(60) for task in tasks} == {STABLE.digest}


async def resolve_for_run(http):
    """Resolves a simulator as the opening of a run does."""
    from agentworld.serving.simulators.base import SimulatorRequest

    return await http.app.state.app_state.simulators.resolve(
        SimulatorRequest(STABLE.digest, "run", "acme")
    )


def test_the_run_id_decides_between_the_simulator_and_its_canary(http, ledger):
    canary = Canary(simulator=CANARY.digest, percent=30)
    ledger.aliases.set("world", STABLE.digest, "ada", canary=canary)
    for number in range(20):
        key = f"{number:032}" if number % 2 else None
        run = open_run(http, key=key).json()["run"]
        expected = CANARY if gets_canary("world", run["id"], 30) else STABLE
        assert run["simulator"] == expected.digest

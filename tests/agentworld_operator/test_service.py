"""An operator and a service of many simulators, in separate processes, with one API server."""

import httpx
import pytest

import agentworld.serving.main
import make.access
from agentworld.access.secret import RUN_TOKENS, ensure_secret
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.records.simulator import Endpoint
from agentworld.records.statements.alias import gets_canary
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from fakes import endpoint
from machines.forked import Forked
from make import records
from make.operator import kubeconfig
from make.simulator import simulator
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.waits


@pytest.fixture
def world():
    """An external endpoint that echoes requests."""

    def say(asked: endpoint.Asked) -> str:
        return f"{asked.body['messages'][-1]['content']}\n[0] ~"

    with endpoint.running(say) as served:
        yield served


@pytest.fixture
def served(kubernetes, namespace, tmp_path):
    """The address of the service."""
    port = free_port()
    ensure_signer(tmp_path / "keys" / SIMULATOR_KEYS)
    ensure_secret(tmp_path / "keys" / RUN_TOKENS)
    told = {
        "namespace": namespace.namespace,
        "kubeconfig": kubeconfig(kubernetes, namespace, "agentworld-service"),
        "ledger_url": f"sqlite:///{tmp_path / 'ledger.db'}",
        "objects_url": tmp_path / "objects",
        "mirror_url": tmp_path / "mirror",
        "keys": tmp_path / "keys",
        "access": make.access.access_file(tmp_path),
        "engine_wait_seconds": 2,
        "host": LOOPBACK,
        "port": port,
    }
    environment = {f"AGENTWORLD_{name.upper()}": str(value) for name, value in told.items()}
    log = tmp_path / "service.log"
    process = Forked(log, agentworld.serving.main.main, **environment)
    url = f"http://{LOOPBACK}:{port}"

    def listens():
        assert process.poll() is None, log.read_text()
        try:
            return httpx.get(f"{url}/health").is_success
        except httpx.TransportError:
            return False

    try:
        wait_for(listens)
        yield url
    finally:
        process.terminate()
        process.wait(DEADLINE)


def ask(url, path, key="acme-agent", **body):
    headers = {"Authorization": make.access.bearer(key)}
    return httpx.post(url + path, headers=headers, json=body)


def opened(url, simulator, key="acme-agent"):
    opening = {"agent": "a", "starting_weights": records.digest("starting"), "simulator": simulator}
    return ask(url, "/runs", key, **opening)


def point(url, simulator, **fields):
    """Lets `stable` mean it, as the webhook has it recorded."""
    headers = {"Authorization": make.access.bearer("acme-operator"), "Idempotency-Key": "1"}
    body = {"kind": "simulator", "simulator": simulator, "by": "ada", **fields}
    assert httpx.put(f"{url}/aliases/stable", headers=headers, json=body).is_success


def create(namespace, name, manifest):
    """A Simulator of an endpoint; gives its digest, as the operator computed it."""
    built = simulator(name)
    built["spec"] = {"identity": {"manifest": manifest.model_dump(mode="json")}}
    namespace.create(built)
    wait_for(lambda: namespace.conditions(name).get("Ready") == ("True", "Endpoint"))
    return namespace.get("Simulator", name)["status"]["digest"]


def of_endpoint(url, **fields):
    asked = Endpoint(url=url, model="world")
    return records.manifest(engine=asked, artifact=None, files={}, **fields)


def test_a_run_opens_with_a_cluster_simulator_and_its_episodes_are_answered(
    namespace, start, served, world
):
    start()
    manifest = of_endpoint(world.url)
    digest = create(namespace, "one", manifest)
    assert digest == manifest.digest
    run = opened(served, digest).json()["run"]
    assert run["simulator"] == digest
    episode = ask(served, "/episodes", run=run["id"]).json()["episode"]
    answer = ask(served, "/steps", episode=episode, action="echo hello", step=1)
    assert answer.headers["x-agentworld-simulator"] == digest
    assert "echo hello" in answer.json()["observation"]


def test_the_operator_gets_open_episode_counts_from_the_service(
    namespace, start, served, world, tmp_path
):
    token = tmp_path / "token"
    token.write_text(make.access.key("acme-operator"))
    start(service_url=served, service_token=token)
    digest = create(namespace, "one", of_endpoint(world.url))
    run = opened(served, digest).json()["run"]["id"]
    ask(served, "/episodes", run=run)
    ask(served, "/episodes", run=run)
    wait_for(lambda: namespace.get("Simulator", "one")["status"].get("openEpisodes") == 2)


def test_a_deleted_simulator_serves_open_episodes_and_refuses_new_runs(
    namespace, start, served, world
):
    start()
    digest = create(namespace, "one", of_endpoint(world.url))
    run = opened(served, digest).json()["run"]["id"]
    episode = ask(served, "/episodes", run=run).json()["episode"]
    namespace.delete("Simulator", "one")
    assert ask(served, "/steps", episode=episode, action="ls", step=1).is_success
    for another in (digest, records.digest("nobody's")):
        refused = opened(served, another)
        assert refused.status_code == 404
        assert "no Simulator has the digest" in refused.json()["error"]["message"]
    assert ask(served, "/steps", episode=episode, action="ls", step=2).is_success


def test_a_simulator_with_tenants_refuses_new_runs_of_other_tenants(
    namespace, start, served, world
):
    start()
    digest = create(namespace, "one", of_endpoint(world.url))
    point(served, digest)
    run = opened(served, "stable").json()["run"]
    assert run["simulator"] == digest
    namespace.change("one", tenants=["rival"])
    for name in ("stable", digest):
        refused = opened(served, name)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
        assert opened(served, name, "rival-agent").json()["run"]["simulator"] == digest
    episode = ask(served, "/episodes", run=run["id"]).json()["episode"]
    assert ask(served, "/steps", episode=episode, action="ls", step=1).is_success
    namespace.change("one", tenants=["rival", "acme"])
    assert opened(served, digest).is_success


def test_a_canary_gets_the_runs_selected_by_their_id(namespace, start, served, world):
    start()
    stable = create(namespace, "one", of_endpoint(world.url))
    tried = create(namespace, "two", of_endpoint(world.url, control_text="two"))
    point(served, stable, canary={"simulator": tried, "percent": 40})
    for _ in range(10):
        run = opened(served, "stable").json()["run"]
        assert run["simulator"] == (tried if gets_canary("stable", run["id"], 40) else stable)


def test_a_step_before_the_engine_starts_returns_a_typed_503(namespace, start, served):
    start()
    namespace.create(simulator())
    wait_for(lambda: namespace.conditions("one").get("Ready") == ("False", "Starting"))
    digest = namespace.get("Simulator", "one")["status"]["digest"]
    run = opened(served, digest).json()["run"]["id"]
    episode = ask(served, "/episodes", run=run).json()["episode"]
    answer = ask(served, "/steps", episode=episode, action="ls", step=1)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "starting")
    assert "observation" not in answer.json()

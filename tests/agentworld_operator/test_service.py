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

    def echo(request: endpoint.Request) -> str:
        return f"{request.body['messages'][-1]['content']}\n[0] ~"

    with endpoint.running(echo) as server:
        yield server


@pytest.fixture
def service_url(kubernetes, namespace, tmp_path):
    """The address of the service."""
    port = free_port()
    ensure_signer(tmp_path / "keys" / SIMULATOR_KEYS)
    ensure_secret(tmp_path / "keys" / RUN_TOKENS)
    settings = {
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
    environment = {f"AGENTWORLD_{name.upper()}": str(value) for name, value in settings.items()}
    log = tmp_path / "service.log"
    process = Forked(log, agentworld.serving.main.main, **environment)
    url = f"http://{LOOPBACK}:{port}"

    def is_listening():
        assert process.poll() is None, log.read_text()
        try:
            return httpx.get(f"{url}/health").is_success
        except httpx.TransportError:
            return False

    try:
        wait_for(is_listening)
        yield url
    finally:
        process.terminate()
        process.wait(DEADLINE)


def ask(url, path, key="acme-agent", **body):
    headers = {"Authorization": make.access.bearer(key)}
    return httpx.post(url + path, headers=headers, json=body)


def open_run(url, simulator, key="acme-agent"):
    opening = {"agent": "a", "starting_weights": records.digest("starting"), "simulator": simulator}
    return ask(url, "/runs", key, **opening)


def point(url, simulator, **fields):
    """Points `stable` at a simulator, as the webhook would record it."""
    headers = {"Authorization": make.access.bearer("acme-operator"), "Idempotency-Key": "1"}
    body = {"kind": "simulator", "simulator": simulator, "by": "ada", **fields}
    assert httpx.put(f"{url}/aliases/stable", headers=headers, json=body).is_success


def create(namespace, name, manifest):
    """Creates a Simulator of an endpoint, and returns the digest that the operator computed."""
    resource = simulator(name)
    resource["spec"] = {"identity": {"manifest": manifest.model_dump(mode="json")}}
    namespace.create(resource)
    wait_for(lambda: namespace.conditions(name).get("Ready") == ("True", "Endpoint"))
    return namespace.get("Simulator", name)["status"]["digest"]


def endpoint_manifest(url, **fields):
    engine = Endpoint(url=url, model="world")
    return records.manifest(engine=engine, artifact=None, files={}, **fields)


def test_a_run_opens_with_a_cluster_simulator_and_its_episodes_are_answered(
    namespace, start, service_url, world
):
    start()
    manifest = endpoint_manifest(world.url)
    digest = create(namespace, "one", manifest)
    assert digest == manifest.digest
    run = open_run(service_url, digest).json()["run"]
    assert run["simulator"] == digest
    episode = ask(service_url, "/episodes", run=run["id"]).json()["episode"]
    answer = ask(service_url, "/steps", episode=episode, action="echo hello", step=1)
    assert answer.headers["x-agentworld-simulator"] == digest
    assert "echo hello" in answer.json()["observation"]


def test_the_operator_gets_open_episode_counts_from_the_service(
    namespace, start, service_url, world, tmp_path
):
    token = tmp_path / "token"
    token.write_text(make.access.key("acme-operator"))
    start(service_url=service_url, service_token=token)
    digest = create(namespace, "one", endpoint_manifest(world.url))
    run = open_run(service_url, digest).json()["run"]["id"]
    ask(service_url, "/episodes", run=run)
    ask(service_url, "/episodes", run=run)
    wait_for(lambda: namespace.get("Simulator", "one")["status"].get("openEpisodes") == 2)


def test_a_deleted_simulator_serves_open_episodes_and_refuses_new_runs(
    namespace, start, service_url, world
):
    start()
    digest = create(namespace, "one", endpoint_manifest(world.url))
    run = open_run(service_url, digest).json()["run"]["id"]
    episode = ask(service_url, "/episodes", run=run).json()["episode"]
    namespace.delete("Simulator", "one")
    assert ask(service_url, "/steps", episode=episode, action="ls", step=1).is_success
    for missing_digest in (digest, records.digest("nobody's")):
        answer = open_run(service_url, missing_digest)
        assert answer.status_code == 404
        assert "no Simulator has the digest" in answer.json()["error"]["message"]
    assert ask(service_url, "/steps", episode=episode, action="ls", step=2).is_success


def test_a_simulator_with_tenants_refuses_new_runs_of_other_tenants(
    namespace, start, service_url, world
):
    start()
    digest = create(namespace, "one", endpoint_manifest(world.url))
    point(service_url, digest)
    run = open_run(service_url, "stable").json()["run"]
    assert run["simulator"] == digest
    namespace.change("one", tenants=["rival"])
    for name in ("stable", digest):
        answer = open_run(service_url, name)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "forbidden")
        assert open_run(service_url, name, "rival-agent").json()["run"]["simulator"] == digest
    episode = ask(service_url, "/episodes", run=run["id"]).json()["episode"]
    assert ask(service_url, "/steps", episode=episode, action="ls", step=1).is_success
    namespace.change("one", tenants=["rival", "acme"])
    assert open_run(service_url, digest).is_success


def test_a_canary_gets_the_runs_selected_by_their_id(namespace, start, service_url, world):
    start()
    stable = create(namespace, "one", endpoint_manifest(world.url))
    canary = create(namespace, "two", endpoint_manifest(world.url, control_text="two"))
    point(service_url, stable, canary={"simulator": canary, "percent": 40})
    for _ in range(10):
        run = open_run(service_url, "stable").json()["run"]
        assert run["simulator"] == (canary if gets_canary("stable", run["id"], 40) else stable)


def test_a_step_before_the_engine_starts_returns_a_typed_503(namespace, start, service_url):
    start()
    namespace.create(simulator())
    wait_for(lambda: namespace.conditions("one").get("Ready") == ("False", "Starting"))
    digest = namespace.get("Simulator", "one")["status"]["digest"]
    run = open_run(service_url, digest).json()["run"]["id"]
    episode = ask(service_url, "/episodes", run=run).json()["episode"]
    answer = ask(service_url, "/steps", episode=episode, action="ls", step=1)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "starting")
    assert "observation" not in answer.json()

"""In a service of many simulators, each protocol uses and names the simulator of the run."""

import json

import httpx
import pytest
from starlette.testclient import TestClient

import make.access
import make.many
from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.http.protection import Limits
from make.access import bearer
from make.many import FIRST, NAMES, SECOND, Catalogue
from make.service import OPENING, listening

SIMULATORS = [FIRST.digest, SECOND.digest]


@pytest.fixture
def http(tmp_path):
    with TestClient(make.many.app(tmp_path, Catalogue()), "http://localhost") as client:
        yield client


@pytest.fixture(params=SIMULATORS, ids=NAMES.values())
def run(http, request):
    """A run of one simulator, opened after a run of the other, with both connections open."""
    (other_simulator,) = set(SIMULATORS) - {request.param}
    runs = {simulator: open_run(http, simulator) for simulator in (other_simulator, request.param)}
    episode = http.post("/episodes", json={"run": runs[other_simulator]}).json()["episode"]
    http.post("/steps", json={"episode": episode, "action": "ls", "step": 1})
    return request.param, runs[request.param]


def open_run(http, simulator):
    body = {**OPENING.model_dump(mode="json"), "simulator": simulator}
    return http.post("/runs", json=body).json()["run"]["id"]


def answer_of(simulator, action="ls"):
    return f"{NAMES[simulator]}: {action}\n[0] ~"


def frame(socket, kind, **data):
    socket.send_text(json.dumps({"type": kind, "data": data}))
    return json.loads(socket.receive_text())["data"]


def test_openenv_over_a_socket_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    with http.websocket_connect(f"/runs/{name}/ws") as socket:
        assert frame(socket, "reset")["observation"]["simulator"] == simulator
        observation = frame(socket, "step", action="ls")["observation"]
        assert (observation["text"], observation["simulator"]) == (answer_of(simulator), simulator)
        assert frame(socket, "state")["simulator"] == simulator


def test_openenv_over_http_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    reset = http.post(f"/runs/{name}/reset").json()["observation"]
    body = {"action": {"action": "ls"}, "episode_id": reset["episode"]}
    answer = http.post(f"/runs/{name}/step", json=body)
    assert answer.json()["observation"]["text"] == answer_of(simulator)
    assert answer.headers[SIMULATOR_HEADER] == reset["simulator"] == simulator
    state = http.get(f"/runs/{name}/state", params={"episode_id": reset["episode"]}).json()
    assert state["simulator"] == http.get(f"/runs/{name}/metadata").json()["version"] == simulator


@pytest.mark.compute
def test_openai_chat_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    (model,) = http.get(f"/runs/{name}/v1/models").json()["data"]
    assert model["id"] == f"agentworld-{simulator[7:19]}"
    body = {"model": model["id"], "messages": [{"role": "user", "content": "ls"}]}
    answer = http.post(f"/runs/{name}/v1/chat/completions", json=body)
    completion = answer.json()
    assert completion["choices"][0]["message"]["content"] == answer_of(simulator)
    assert completion["system_fingerprint"] == answer.headers[SIMULATOR_HEADER] == simulator


def test_the_model_of_another_run_is_not_found(http, run):
    simulator, name = run
    (other_simulator,) = set(SIMULATORS) - {simulator}
    body = {"model": other_simulator, "messages": [{"role": "user", "content": "ls"}]}
    answer = http.post(f"/runs/{name}/v1/chat/completions", json=body)
    assert (answer.status_code, answer.headers[SIMULATOR_HEADER]) == (404, simulator)


def test_a_runs_token_lists_the_model_of_its_run(tmp_path):
    app = make.many.app(tmp_path, Catalogue(), make.access.Checked(tmp_path))
    with TestClient(app, "http://localhost") as http:
        for simulator in SIMULATORS:
            body = {**OPENING.model_dump(mode="json"), "simulator": simulator}
            headers = {"authorization": bearer("acme-agent")}
            token = http.post("/runs", json=body, headers=headers).json()["token"]
            token_headers = {"authorization": f"Bearer {token}"}
            (model,) = http.get("/v1/models", headers=token_headers).json()["data"]
            assert model["id"] == f"agentworld-{simulator[7:19]}"


def rpc(http, episode, method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    return http.post(f"/episodes/{episode}/mcp", json=body, headers=accept)


def test_mcp_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    episode = http.post("/episodes", json={"run": name}).json()["episode"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    handshake = rpc(
        http, episode, "initialize", **hello, clientInfo={"name": "a test", "version": "1"}
    ).json()["result"]
    assert handshake["serverInfo"]["version"] == simulator
    answer = rpc(http, episode, "tools/call", name="bash", arguments={"command": "ls"})
    result = answer.json()["result"]
    assert result["content"][0]["text"] == answer_of(simulator)
    assert result["_meta"]["agentworld"]["simulator"] == simulator
    assert answer.headers[SIMULATOR_HEADER] == simulator


def test_a_refused_oversized_request_has_no_simulator_header(tmp_path):
    app = make.many.app(tmp_path, Catalogue())
    with listening(app, Limits(body_bytes=100)) as url:
        answer = httpx.post(f"{url}/runs", content=b"x" * 200, trust_env=False)
    assert answer.status_code == 413
    assert SIMULATOR_HEADER not in answer.headers

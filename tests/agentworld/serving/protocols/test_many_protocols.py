"""Every protocol of a service of many simulators: a run is answered by its own one, which is
named.
"""

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
    """A run of one of them, after one of the other, with all connections open."""
    (other,) = set(SIMULATORS) - {request.param}
    opened = {each: open_run(http, each) for each in (other, request.param)}
    episode = http.post("/episodes", json={"run": opened[other]}).json()["episode"]
    http.post("/steps", json={"episode": episode, "action": "ls", "step": 1})
    return request.param, opened[request.param]


def open_run(http, simulator):
    body = {**OPENING.model_dump(mode="json"), "simulator": simulator}
    return http.post("/runs", json=body).json()["run"]["id"]


def said(simulator, action="ls"):
    return f"{NAMES[simulator]}: {action}\n[0] ~"


def frame(socket, kind, **data):
    socket.send_text(json.dumps({"type": kind, "data": data}))
    return json.loads(socket.receive_text())["data"]


def test_openenv_over_a_socket_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    with http.websocket_connect(f"/runs/{name}/ws") as socket:
        assert frame(socket, "reset")["observation"]["simulator"] == simulator
        shown = frame(socket, "step", action="ls")["observation"]
        assert (shown["text"], shown["simulator"]) == (said(simulator), simulator)
        assert frame(socket, "state")["simulator"] == simulator


def test_openenv_over_http_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    begun = http.post(f"/runs/{name}/reset").json()["observation"]
    asked = {"action": {"action": "ls"}, "episode_id": begun["episode"]}
    shown = http.post(f"/runs/{name}/step", json=asked)
    assert shown.json()["observation"]["text"] == said(simulator)
    assert shown.headers[SIMULATOR_HEADER] == begun["simulator"] == simulator
    state = http.get(f"/runs/{name}/state", params={"episode_id": begun["episode"]}).json()
    assert state["simulator"] == http.get(f"/runs/{name}/metadata").json()["version"] == simulator


@pytest.mark.compute
def test_openai_chat_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    (listed,) = http.get(f"/runs/{name}/v1/models").json()["data"]
    assert listed["id"] == f"agentworld-{simulator[7:19]}"
    asked = {"model": listed["id"], "messages": [{"role": "user", "content": "ls"}]}
    answer = http.post(f"/runs/{name}/v1/chat/completions", json=asked)
    told = answer.json()
    assert told["choices"][0]["message"]["content"] == said(simulator)
    assert told["system_fingerprint"] == answer.headers[SIMULATOR_HEADER] == simulator


def test_the_model_of_another_run_is_not_found(http, run):
    simulator, name = run
    (other,) = set(SIMULATORS) - {simulator}
    asked = {"model": other, "messages": [{"role": "user", "content": "ls"}]}
    answer = http.post(f"/runs/{name}/v1/chat/completions", json=asked)
    assert (answer.status_code, answer.headers[SIMULATOR_HEADER]) == (404, simulator)


def test_a_runs_token_lists_the_model_of_its_run(tmp_path):
    app = make.many.app(tmp_path, Catalogue(), make.access.Checked(tmp_path))
    with TestClient(app, "http://localhost") as http:
        for simulator in SIMULATORS:
            body = {**OPENING.model_dump(mode="json"), "simulator": simulator}
            key = {"authorization": bearer("acme-agent")}
            token = http.post("/runs", json=body, headers=key).json()["token"]
            own = {"authorization": f"Bearer {token}"}
            (listed,) = http.get("/v1/models", headers=own).json()["data"]
            assert listed["id"] == f"agentworld-{simulator[7:19]}"


def rpc(http, episode, method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    return http.post(f"/episodes/{episode}/mcp", json=body, headers=accept)


def test_mcp_uses_the_simulator_of_the_run(http, run):
    simulator, name = run
    episode = http.post("/episodes", json={"run": name}).json()["episode"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    met = rpc(
        http, episode, "initialize", **hello, clientInfo={"name": "a test", "version": "1"}
    ).json()["result"]
    assert met["serverInfo"]["version"] == simulator
    called = rpc(http, episode, "tools/call", name="bash", arguments={"command": "ls"})
    result = called.json()["result"]
    assert result["content"][0]["text"] == said(simulator)
    assert result["_meta"]["agentworld"]["simulator"] == simulator
    assert called.headers[SIMULATOR_HEADER] == simulator


def test_a_refused_oversized_request_has_no_simulator_header(tmp_path):
    app = make.many.app(tmp_path, Catalogue())
    with listening(app, Limits(body_bytes=100)) as url:
        answer = httpx.post(f"{url}/runs", content=b"x" * 200, trust_env=False)
    assert answer.status_code == 413
    assert SIMULATOR_HEADER not in answer.headers

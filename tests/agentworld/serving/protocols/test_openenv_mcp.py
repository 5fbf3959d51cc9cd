"""OpenEnv's sessions and tools: JSON-RPC requests of its clients over HTTP and sockets."""

import json

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from agentworld.errors import EngineError
from make import records
from make.service import OPENING, SIMULATOR, service

pytestmark = pytest.mark.compute

TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


class RunClient:
    """A client of one run over HTTP and sockets."""

    def __init__(self, http):
        self.http = http
        self.run = open_run(http)

    def rpc(self, method, **params):
        """The result of a request, or its error."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        answer = self.http.post(f"/runs/{self.run}/mcp", json=body)
        assert (answer.status_code, answer.json()["id"]) == (200, 7)
        return answer.json().get("result") or answer.json()["error"]

    def session(self):
        return self.rpc("openenv/session/create")["session_id"]

    def call(self, command, **params):
        return self.rpc("tools/call", name="bash", arguments={"command": command}, **params)

    def socket(self, path="ws", **query):
        pairs = "&".join(f"{name}={value}" for name, value in query.items())
        return self.http.websocket_connect(f"/runs/{self.run}/{path}?{pairs}")


def open_run(http):
    return http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]


@pytest.fixture
def server(tmp_path):
    return service(tmp_path)


@pytest.fixture
def client(server):
    with TestClient(server.app, "http://localhost") as http:
        yield RunClient(http)


def ask(socket, frame):
    socket.send_text(frame if isinstance(frame, str) else json.dumps(frame))
    return json.loads(socket.receive_text())


def frame(kind, **data):
    return {"type": kind, "data": data}


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": "a", "method": method, "params": params}


def meta_of(result):
    return result["_meta"]["agentworld"]


def test_socket_steps_and_tool_calls_of_a_session_share_one_episode(client):
    session = client.session()
    with client.socket(session_id=session) as socket:
        start = ask(socket, frame("reset", turn_limit=3))["data"]["observation"]
        first = client.call("echo a", session_id=session)
        second = ask(socket, frame("step", action="echo b"))["data"]["observation"]
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 2
        third = client.call("echo c", session_id=session)
    assert [first["data"], second["text"], third["data"]] == ["a\n[0] ~", "b\n[0] ~", "c\n[0] ~"]
    assert first["content"] == [{"type": "text", "text": "a\n[0] ~"}]
    assert [meta_of(first)["step"], second["step"], meta_of(third)["step"]] == [1, 2, 3]
    assert meta_of(third)["truncated"]
    assert {start["episode"], second["episode"], meta_of(third)["episode"]} == {session}


def test_a_session_that_was_not_reset_begins_with_its_first_call(client):
    session = client.session()
    steps = [meta_of(client.call("ls", session_id=session))["step"] for _ in range(2)]
    assert steps == [1, 2]
    with client.socket(session_id=session) as socket:
        assert ask(socket, frame("step", action="ls"))["data"]["observation"]["step"] == 3


def test_any_replica_finds_the_last_of_the_consecutive_episodes_of_a_session(client, tmp_path):
    session, names = client.session(), []
    with client.socket(session_id=session) as socket:
        for _ in range(6):
            names.append(ask(socket, frame("reset"))["data"]["observation"]["episode"])
            assert meta_of(client.call("ls", session_id=session))["episode"] == names[-1]
    assert len(set(names)) == 6
    with TestClient(service(tmp_path).app, "http://localhost") as http:
        client.http = http
        metadata = meta_of(client.call("ls", session_id=session))
        assert (metadata["episode"], metadata["step"]) == (names[-1], 2)


def test_a_new_connection_resumes_a_session(client):
    session = client.session()
    with client.socket(session_id=session) as socket:
        ask(socket, frame("reset"))
        ask(socket, frame("step", action="ls"))
    with client.socket(session_id=session) as socket:
        state = ask(socket, {"type": "state"})["data"]
        assert (state["episode_id"], state["step_count"]) == (session, 1)
        observation = ask(socket, frame("reset", episode_id=session))["data"]["observation"]
        assert (observation["episode"], observation["step"]) == (session, 1)


def test_a_session_ignores_a_custom_episode_id_and_refuses_another_episode(client):
    session = client.session()
    with client.socket(session_id=session) as socket:
        observation = ask(socket, frame("reset", episode_id="ep-1"))["data"]["observation"]
        assert observation["episode"] == session
        episode = client.http.post(f"/runs/{client.run}/reset").json()["observation"]["episode"]
        error = ask(socket, frame("reset", episode_id=episode))["data"]
    assert (error["kind"], "connect without a session_id" in error["message"]) == (
        *("conflict", True),
    )


def test_a_closed_session_refuses_steps(client):
    session = client.session()
    client.call("ls", session_id=session)
    for _ in range(2):
        assert client.rpc("openenv/session/close", session_id=session)["closed"]
    assert "is over (closed)" in client.call("ls", session_id=session)["message"]


def test_a_session_of_another_run_is_refused(client):
    session = client.session()
    client.call("ls", session_id=session)
    client.run = open_run(client.http)
    assert client.call("ls", session_id=session)["data"]["kind"] == "conflict"


@pytest.mark.parametrize("session_id", ["", "x", "0" * 31, "0" * 33, "G" * 32, 7, ["a"]], ids=str)
def test_an_invalid_session_id_is_refused(client, session_id):
    error = client.rpc("tools/list", session_id=session_id)
    assert (error["code"], "there is no session" in error["message"]) == (-32602, True)


def test_a_socket_with_an_invalid_session_id_gets_an_error_and_closes(client):
    with client.socket(session_id="x") as socket:
        error = json.loads(socket.receive_text())["data"]
        assert (error["code"], error["kind"]) == ("SESSION_ERROR", "input")
        with pytest.raises(WebSocketDisconnect):
            socket.receive_text()


def test_the_tools_of_an_episode_replace_the_tools_of_the_simulator(client):
    session = client.session()
    assert [tool["name"] for tool in client.rpc("tools/list")["tools"]] == ["bash"]
    (bash,) = client.rpc("tools/list", session_id=session)["tools"]
    assert bash["inputSchema"]["required"] == ["command"]
    with client.socket(session_id=session) as socket:
        ask(socket, frame("reset", tools=[TOOL]))
        (look,) = client.rpc("tools/list", session_id=session)["tools"]
        assert (look["name"], look["inputSchema"]) == ("look", {"type": "object"})
        answer = ask(socket, frame("step", type="list_tools"))["data"]
    assert answer == {"observation": {"tools": [TOOL]}, "reward": None, "done": False}


def test_tools_can_be_listed_before_a_reset_but_called_only_after_a_reset(client):
    call = frame("step", type="call_tool", tool_name="bash", arguments={"command": "echo a"})
    with client.socket() as socket:
        (bash,) = ask(socket, frame("step", type="list_tools"))["data"]["observation"]["tools"]
        assert "reset first" in ask(socket, call)["data"]["message"]
        ask(socket, frame("reset"))
        reply = ask(socket, call)["data"]["observation"]
    assert bash["input_schema"]["type"] == "object"
    assert (reply["tool_name"], reply["result"], reply["error"]) == ("bash", "a\n[0] ~", None)
    assert (reply["text"], reply["step"]) == (reply["result"], reply["metadata"]["step"])


def test_json_rpc_frames_use_the_session_of_their_connection(client):
    call = rpc("tools/call", name="bash", arguments={"command": "echo a"})
    with client.socket() as socket:
        answer = ask(socket, {"type": "mcp", "data": call})
        assert (answer["type"], answer["data"]["id"]) == ("mcp", "a")
        assert answer["data"]["result"]["data"] == "a\n[0] ~"
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 1
        response = ask(socket, {"type": "mcp", "data": rpc("openenv/session/create")})["data"]
        assert "is a session already" in response["error"]["message"]


def test_an_mcp_socket_uses_json_rpc_without_frames(client):
    call = rpc("tools/call", name="bash", arguments={"command": "echo a"})
    with client.socket("mcp") as socket:
        assert [ask(socket, call)["result"]["data"] for _ in range(2)] == ["a\n[0] ~"] * 2
        assert meta_of(ask(socket, call)["result"])["step"] == 3
        assert ask(socket, "{")["error"]["code"] == -32700
    session = client.session()
    with client.socket("mcp", session_id=session) as socket:
        assert ask(socket, rpc("openenv/session/create"))["result"]["session_id"] == session


def test_a_call_without_a_session_is_an_episode_of_one_step(client, server):
    metadata = meta_of(client.call("echo a"))
    assert (metadata["step"], metadata["truncated"]) == (1, True)
    assert client.rpc("tools/call", name="nothing")["code"] == -32602
    assert [episode.closed for episode in server.ledger.episodes(client.run)] == ["limit"]


def test_a_call_without_a_session_that_fails_leaves_no_episode_open(tmp_path):
    server = service(tmp_path, lambda messages: EngineError("gone"))
    with TestClient(server.app, "http://localhost") as http:
        client = RunClient(http)
        assert client.call("ls")["data"]["kind"] == "engine"
    assert [episode.closed for episode in server.ledger.episodes(client.run)] == ["closed"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"{}", -32600),
        (b"[]", -32600),
        (b'{"jsonrpc": "1.0", "method": "tools/list"}', -32600),
        (b'{"jsonrpc": "2.0", "method": "tools/list", "params": []}', -32600),
        (b'{"jsonrpc": "2.0", "method": "reset"}', -32601),
        (b'{"jsonrpc": "2.0", "method": "openenv/session/close"}', -32602),
        (b'{"jsonrpc": "2.0", "method": "tools/call"}', -32602),
        (b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "b"}}', -32602),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_an_invalid_request_gets_a_json_rpc_error(client, body, code):
    answer = client.http.post(f"/runs/{client.run}/mcp", content=body)
    assert (answer.status_code, answer.json()["jsonrpc"]) == (200, "2.0")
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["message"]


def test_listing_the_tools_of_an_unknown_run_is_404(client):
    client.run = "nobody"
    assert client.http.post("/runs/nobody/mcp", json=rpc("tools/list")).status_code == 404


def test_openenv_steps_and_refusals_are_counted(client):
    client.call("ls")
    client.rpc("tools/call", name="nothing")
    metrics = client.http.get("/metrics").text
    assert f'agentworld_steps_total{{protocol="openenv",simulator="{SIMULATOR}"}} 1.0' in metrics
    assert 'kind="input"' in metrics


def test_the_openapi_document_of_a_run_lists_only_its_routes(client):
    document = client.http.get(f"/runs/{client.run}/openapi.json").json()
    assert {"/reset", "/step", "/state", "/mcp", "/v1/models"} <= document["paths"].keys()
    assert not {path for path in document["paths"] if "{run}" in path or path == "/close"}
    assert document["servers"] == [{"url": "."}]
    parameters = document["paths"]["/state"]["get"]["parameters"]
    assert [parameter["name"] for parameter in parameters] == ["episode_id"]
    assert client.http.get("/runs/nobody/openapi.json").status_code == 404


def test_the_action_schema_title_differs_from_openenvs_tool_actions(client):
    action = client.http.get(f"/runs/{client.run}/schema").json()["action"]
    assert action["title"] not in ("Action", "CallToolAction", "ListToolsAction")
    assert action["required"] == ["action"]


def test_a_step_over_its_timeout_s_is_a_slow_error(client):
    episode = client.http.post(f"/runs/{client.run}/reset").json()["observation"]["episode"]
    body = {"action": {"action": "ls"}, "episode_id": episode}
    slow_answer = client.http.post(f"/runs/{client.run}/step", json={**body, "timeout_s": 1e-9})
    assert (slow_answer.status_code, slow_answer.json()["error"]["kind"]) == (504, "slow")
    answer = client.http.post(f"/runs/{client.run}/step", json={**body, "timeout_s": 30})
    assert answer.json()["observation"]["text"] == "[0] ~"
    invalid_answer = client.http.post(f"/runs/{client.run}/step", json={**body, "timeout_s": 0})
    assert invalid_answer.status_code == 422


def test_a_simulator_without_tools_lists_none_and_refuses_calls(tmp_path):
    server = service(tmp_path, pinned=records.manifest(domains=records.pinned_domains("text")))
    with TestClient(server.app, "http://localhost") as http:
        client = RunClient(http)
        assert client.rpc("tools/list") == {"tools": []}
        assert "there is none" in client.call("ls")["message"]

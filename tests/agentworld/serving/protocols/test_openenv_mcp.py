"""OpenEnv's sessions and tools: what its clients ask by JSON-RPC, over HTTP and over sockets."""

import json

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from agentworld.errors import EngineError
from make import records
from make.service import OPENING, SIMULATOR, service

pytestmark = pytest.mark.compute

TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


class Asker:
    """A run, used over HTTP and over sockets."""

    def __init__(self, http):
        self.http = http
        self.run = opened(http)

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
        words = "&".join(f"{name}={value}" for name, value in query.items())
        return self.http.websocket_connect(f"/runs/{self.run}/{path}?{words}")


def opened(http):
    return http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]


@pytest.fixture
def served(tmp_path):
    return service(tmp_path)


@pytest.fixture
def asker(served):
    with TestClient(served.app, "http://localhost") as http:
        yield Asker(http)


def ask(socket, frame):
    socket.send_text(frame if isinstance(frame, str) else json.dumps(frame))
    return json.loads(socket.receive_text())


def frame(kind, **data):
    return {"type": kind, "data": data}


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": "a", "method": method, "params": params}


def meaning(result):
    return result["_meta"]["agentworld"]


def test_socket_steps_and_tool_calls_of_a_session_share_one_episode(asker):
    session = asker.session()
    with asker.socket(session_id=session) as socket:
        begun = ask(socket, frame("reset", turn_limit=3))["data"]["observation"]
        first = asker.call("echo a", session_id=session)
        second = ask(socket, frame("step", action="echo b"))["data"]["observation"]
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 2
        third = asker.call("echo c", session_id=session)
    assert [first["data"], second["text"], third["data"]] == ["a\n[0] ~", "b\n[0] ~", "c\n[0] ~"]
    assert first["content"] == [{"type": "text", "text": "a\n[0] ~"}]
    assert [meaning(first)["step"], second["step"], meaning(third)["step"]] == [1, 2, 3]
    assert meaning(third)["truncated"]
    assert {begun["episode"], second["episode"], meaning(third)["episode"]} == {session}


def test_a_session_that_was_not_reset_begins_with_its_first_call(asker):
    session = asker.session()
    steps = [meaning(asker.call("ls", session_id=session))["step"] for _ in range(2)]
    assert steps == [1, 2]
    with asker.socket(session_id=session) as socket:
        assert ask(socket, frame("step", action="ls"))["data"]["observation"]["step"] == 3


def test_any_replica_finds_the_last_of_the_consecutive_episodes_of_a_session(asker, tmp_path):
    session, names = asker.session(), []
    with asker.socket(session_id=session) as socket:
        for _ in range(6):
            names.append(ask(socket, frame("reset"))["data"]["observation"]["episode"])
            assert meaning(asker.call("ls", session_id=session))["episode"] == names[-1]
    assert len(set(names)) == 6
    with TestClient(service(tmp_path).app, "http://localhost") as other:
        asker.http = other
        told = meaning(asker.call("ls", session_id=session))
        assert (told["episode"], told["step"]) == (names[-1], 2)


def test_a_new_connection_resumes_a_session(asker):
    session = asker.session()
    with asker.socket(session_id=session) as socket:
        ask(socket, frame("reset"))
        ask(socket, frame("step", action="ls"))
    with asker.socket(session_id=session) as socket:
        state = ask(socket, {"type": "state"})["data"]
        assert (state["episode_id"], state["step_count"]) == (session, 1)
        again = ask(socket, frame("reset", episode_id=session))["data"]["observation"]
        assert (again["episode"], again["step"]) == (session, 1)


def test_a_session_ignores_a_custom_episode_id_and_refuses_another_episode(asker):
    session = asker.session()
    with asker.socket(session_id=session) as socket:
        begun = ask(socket, frame("reset", episode_id="ep-1"))["data"]["observation"]
        assert begun["episode"] == session
        theirs = asker.http.post(f"/runs/{asker.run}/reset").json()["observation"]["episode"]
        refused = ask(socket, frame("reset", episode_id=theirs))["data"]
    assert (refused["kind"], "connect without a session_id" in refused["message"]) == (
        *("conflict", True),
    )


def test_a_closed_session_refuses_steps(asker):
    session = asker.session()
    asker.call("ls", session_id=session)
    for _ in range(2):
        assert asker.rpc("openenv/session/close", session_id=session)["closed"]
    assert "is over (closed)" in asker.call("ls", session_id=session)["message"]


def test_a_session_of_another_run_is_refused(asker):
    session = asker.session()
    asker.call("ls", session_id=session)
    asker.run = opened(asker.http)
    assert asker.call("ls", session_id=session)["data"]["kind"] == "conflict"


@pytest.mark.parametrize("name", ["", "x", "0" * 31, "0" * 33, "G" * 32, 7, ["a"]], ids=str)
def test_an_invalid_session_id_is_refused(asker, name):
    error = asker.rpc("tools/list", session_id=name)
    assert (error["code"], "there is no session" in error["message"]) == (-32602, True)


def test_a_socket_with_an_invalid_session_id_gets_an_error_and_closes(asker):
    with asker.socket(session_id="x") as socket:
        told = json.loads(socket.receive_text())["data"]
        assert (told["code"], told["kind"]) == ("SESSION_ERROR", "input")
        with pytest.raises(WebSocketDisconnect):
            socket.receive_text()


def test_the_tools_of_an_episode_replace_the_tools_of_the_simulator(asker):
    session = asker.session()
    assert [tool["name"] for tool in asker.rpc("tools/list")["tools"]] == ["bash"]
    (bash,) = asker.rpc("tools/list", session_id=session)["tools"]
    assert bash["inputSchema"]["required"] == ["command"]
    with asker.socket(session_id=session) as socket:
        ask(socket, frame("reset", tools=[TOOL]))
        (look,) = asker.rpc("tools/list", session_id=session)["tools"]
        assert (look["name"], look["inputSchema"]) == ("look", {"type": "object"})
        listed = ask(socket, frame("step", type="list_tools"))["data"]
    assert listed == {"observation": {"tools": [TOOL]}, "reward": None, "done": False}


def test_tools_can_be_listed_before_a_reset_but_called_only_after_a_reset(asker):
    call = frame("step", type="call_tool", tool_name="bash", arguments={"command": "echo a"})
    with asker.socket() as socket:
        (bash,) = ask(socket, frame("step", type="list_tools"))["data"]["observation"]["tools"]
        assert "reset first" in ask(socket, call)["data"]["message"]
        ask(socket, frame("reset"))
        told = ask(socket, call)["data"]["observation"]
    assert bash["input_schema"]["type"] == "object"
    assert (told["tool_name"], told["result"], told["error"]) == ("bash", "a\n[0] ~", None)
    assert (told["text"], told["step"]) == (told["result"], told["metadata"]["step"])


def test_json_rpc_frames_use_the_session_of_their_connection(asker):
    call = rpc("tools/call", name="bash", arguments={"command": "echo a"})
    with asker.socket() as socket:
        told = ask(socket, {"type": "mcp", "data": call})
        assert (told["type"], told["data"]["id"]) == ("mcp", "a")
        assert told["data"]["result"]["data"] == "a\n[0] ~"
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 1
        created = ask(socket, {"type": "mcp", "data": rpc("openenv/session/create")})["data"]
        assert "is a session already" in created["error"]["message"]


def test_an_mcp_socket_uses_json_rpc_without_frames(asker):
    call = rpc("tools/call", name="bash", arguments={"command": "echo a"})
    with asker.socket("mcp") as socket:
        assert [ask(socket, call)["result"]["data"] for _ in range(2)] == ["a\n[0] ~"] * 2
        assert meaning(ask(socket, call)["result"])["step"] == 3
        assert ask(socket, "{")["error"]["code"] == -32700
    session = asker.session()
    with asker.socket("mcp", session_id=session) as socket:
        assert ask(socket, rpc("openenv/session/create"))["result"]["session_id"] == session


def test_a_call_without_a_session_is_an_episode_of_one_step(asker, served):
    told = meaning(asker.call("echo a"))
    assert (told["step"], told["truncated"]) == (1, True)
    assert asker.rpc("tools/call", name="nothing")["code"] == -32602
    assert [episode.closed for episode in served.ledger.episodes(asker.run)] == ["limit"]


def test_a_call_without_a_session_that_fails_leaves_no_episode_open(tmp_path):
    broken = service(tmp_path, lambda messages: EngineError("gone"))
    with TestClient(broken.app, "http://localhost") as http:
        asker = Asker(http)
        assert asker.call("ls")["data"]["kind"] == "engine"
    assert [episode.closed for episode in broken.ledger.episodes(asker.run)] == ["closed"]


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
def test_an_invalid_request_gets_a_json_rpc_error(asker, body, code):
    answer = asker.http.post(f"/runs/{asker.run}/mcp", content=body)
    assert (answer.status_code, answer.json()["jsonrpc"]) == (200, "2.0")
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["message"]


def test_listing_the_tools_of_an_unknown_run_is_404(asker):
    asker.run = "nobody"
    assert asker.http.post("/runs/nobody/mcp", json=rpc("tools/list")).status_code == 404


def test_openenv_steps_and_refusals_are_counted(asker):
    asker.call("ls")
    asker.rpc("tools/call", name="nothing")
    told = asker.http.get("/metrics").text
    assert f'agentworld_steps_total{{protocol="openenv",simulator="{SIMULATOR}"}} 1.0' in told
    assert 'kind="input"' in told


def test_the_openapi_document_of_a_run_lists_only_its_routes(asker):
    told = asker.http.get(f"/runs/{asker.run}/openapi.json").json()
    assert {"/reset", "/step", "/state", "/mcp", "/v1/models"} <= told["paths"].keys()
    assert not {path for path in told["paths"] if "{run}" in path or path == "/close"}
    assert told["servers"] == [{"url": "."}]
    parameters = told["paths"]["/state"]["get"]["parameters"]
    assert [each["name"] for each in parameters] == ["episode_id"]
    assert asker.http.get("/runs/nobody/openapi.json").status_code == 404


def test_the_action_schema_title_differs_from_openenvs_tool_actions(asker):
    action = asker.http.get(f"/runs/{asker.run}/schema").json()["action"]
    assert action["title"] not in ("Action", "CallToolAction", "ListToolsAction")
    assert action["required"] == ["action"]


def test_a_step_over_its_timeout_s_is_a_slow_error(asker):
    episode = asker.http.post(f"/runs/{asker.run}/reset").json()["observation"]["episode"]
    body = {"action": {"action": "ls"}, "episode_id": episode}
    late = asker.http.post(f"/runs/{asker.run}/step", json={**body, "timeout_s": 1e-9})
    assert (late.status_code, late.json()["error"]["kind"]) == (504, "slow")
    taken = asker.http.post(f"/runs/{asker.run}/step", json={**body, "timeout_s": 30})
    assert taken.json()["observation"]["text"] == "[0] ~"
    wrong = asker.http.post(f"/runs/{asker.run}/step", json={**body, "timeout_s": 0})
    assert wrong.status_code == 422


def test_a_simulator_without_tools_lists_none_and_refuses_calls(tmp_path):
    bare = service(tmp_path, pinned=records.manifest(domains=records.pinned_domains("text")))
    with TestClient(bare.app, "http://localhost") as http:
        asker = Asker(http)
        assert asker.rpc("tools/list") == {"tools": []}
        assert "there is none" in asker.call("ls")["message"]

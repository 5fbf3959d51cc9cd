"""The gate: forms of a credential, the rights of a run's token, and trusted hosts."""

import asyncio
import base64
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.testclient import TestClient, WebSocketDenialResponse

import make.access
import make.service
from agentworld.http.auth import Gate, credential
from make import records
from make.access import TOKENS, bearer
from waiting import wait_for

OPENING = {"agent": "a", "starting_weights": records.digest("starting")}
KEY = make.access.key("acme-agent")


def basic(pair):
    return b"Basic " + base64.b64encode(pair.encode())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"Bearer " + KEY.encode(), KEY),
        (b"bearer " + KEY.encode(), KEY),
        (b"BEARER   " + KEY.encode() + b"  ", KEY),
        (basic(f"run:{KEY}"), KEY),
        (b"basic  " + base64.b64encode(f":{KEY}".encode()), KEY),
        (basic("run:with:colons:in:it"), "with:colons:in:it"),
        (basic("näme:pässword"), "pässword"),
        (b"Bearer t\xf6ken", "t\xf6ken"),
        (b"Bearer", None),
        (b"Bearer ", None),
        (b"", None),
        (KEY.encode(), None),
        (b"Bearer\t" + KEY.encode(), None),
        (b"Token " + KEY.encode(), None),
        (basic(KEY), None),
        (basic(f"{KEY}:"), None),
        (b"Basic", None),
        (b"Basic !!!", None),
        (b"Basic " + base64.b64encode(b"run:\xff\xfe"), None),
        (b"Basic " + KEY.encode(), None),
        (b"Basic \xe9\xe9\xe9\xe9", None),
        (b"Bearer " + b"a" * 2**20, None),
        (b"Basic " + base64.b64encode(b"run:" + b"a" * 2**20), None),
    ],
    ids=range(23),
)
def test_a_credential_is_a_bearer_token_or_a_basic_password(value, expected):
    assert credential([(b"accept", b"*/*"), (b"authorization", value)]) == expected


def test_two_authorization_headers_give_no_credential():
    header, other_header = (b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")
    assert credential([header, other_header]) is None
    assert credential([header, header]) is None


@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda data: b"Basic " + data))
@example(b"Basic Og==")
def test_any_authorization_header_gives_a_nonempty_credential_or_none(value):
    token = credential([(b"authorization", value)])
    assert token is None or token


class GatedService:
    """A service with a tenant's run, accessed with the run's own token."""

    def __init__(self, serve, folder):
        self.access = make.access.Checked(folder)
        self.served = serve(access=self.access)
        response = self.ask(bearer("acme-agent"), "POST", "/runs", OPENING).json()
        self.run, self.token = response["run"]["id"], response["token"]

    def ask(self, authorization, method, path, body=None):
        return self.served.http(method, path, body, authorization=authorization)

    def own(self, method, path, body=None):
        return self.ask(f"Bearer {self.token}", method, path, body)

    def connect(self, path, authorization=None):
        headers = {"authorization": authorization or f"Bearer {self.token}"}
        return TestClient(self.served.transport.app).websocket_connect(path, headers=headers)


@pytest.fixture
def gate(serve, tmp_path):
    return GatedService(serve, tmp_path)


def test_a_runs_token_gives_access_only_to_its_run(gate):
    other = gate.ask(bearer("acme-agent"), "POST", "/runs", OPENING).json()["run"]["id"]
    episode = gate.ask(bearer("acme-agent"), "POST", "/episodes", {"run": other}).json()["episode"]
    assert gate.own("GET", f"/runs/{gate.run}").json()["tenant"] == "acme"
    for method, path, body in [
        ("GET", f"/runs/{other}", None),
        ("POST", f"/runs/{other}/close", {"final_weights": records.digest("final")}),
        ("POST", "/episodes", {"run": other}),
        ("POST", "/steps", {"episode": episode, "action": "ls", "step": 1}),
        ("GET", f"/episodes/{episode}", None),
        ("POST", "/episodes", {"run": gate.run, "fork": {"episode": episode, "step": 0}}),
    ]:
        assert (path, gate.own(method, path, body).status_code) == (path, 404)


def test_a_runs_token_cannot_open_a_new_run(gate):
    answer = gate.own("POST", "/runs", OPENING)
    assert (answer.status_code, "token" in answer.json()) == (422, False)
    assert "cannot open another run" in answer.json()["error"]["message"]


def test_a_runs_token_can_play_and_close_its_run(gate):
    episode = gate.own("POST", "/episodes", {"run": gate.run}).json()["episode"]
    step = {"episode": episode, "action": "echo a", "step": 1}
    assert gate.own("POST", "/steps", step).json()["observation"] == "a\n[0] ~"
    closing = {"final_weights": records.digest("final")}
    assert gate.own("POST", f"/runs/{gate.run}/close", closing).is_success
    response = gate.own("POST", "/episodes", {"run": gate.run})
    assert (response.status_code, response.json()["error"]["kind"]) == (409, "conflict")


def test_only_a_runs_token_reveals_that_its_run_is_missing_from_the_ledger(gate):
    token = f"Bearer {gate.access.run_token('0' * 32, 'acme')}"
    for authorization, message in [
        (token, "was opened and the ledger has it no more; have it restored"),
        (bearer("acme-agent"), "open one by POST /runs"),
    ]:
        for path, body in [("/episodes", {"run": "0" * 32}), (f"/runs/{'0' * 32}/reset", {})]:
            response = gate.ask(authorization, "POST", path, body)
            assert (response.status_code, response.json()["error"]["kind"]) == (404, "not-found")
            assert message in response.json()["error"]["message"]


@pytest.mark.waits
def test_with_a_runs_token_protocol_paths_at_the_root_use_that_run(gate):
    episode = gate.own("POST", "/reset", {}).json()["observation"]["episode"]
    step = {"action": {"action": "echo a"}, "episode_id": episode}
    assert gate.own("POST", "/step", step).json()["observation"]["run"] == gate.run
    assert gate.own("GET", f"/state?episode_id={episode}").json()["step_count"] == 1
    for path in ("/schema", "/metadata", "/health", "/openapi.json", "/v1/models"):
        assert gate.own("GET", path).status_code == 200
    listing = {"jsonrpc": "2.0", "method": "tools/list"}
    assert gate.own("POST", "/mcp", listing).json()["result"]["tools"]
    with gate.connect("/ws") as socket:
        socket.send_json({"type": "reset", "data": {"episode_id": episode}})
        assert socket.receive_json()["data"]["observation"]["run"] == gate.run


@pytest.mark.parametrize(
    "path", ["/reset", "/step", "/state", "/schema", "/metadata", "/v1/models"]
)
def test_without_a_runs_token_protocol_paths_at_the_root_are_not_found(gate, path):
    assert gate.ask(bearer("acme-agent"), "GET", path).status_code == 404


@pytest.mark.parametrize("path", ["*", "", "ws", "//ws", "/ws/../runs", "/%2e%2e/runs", "/v1"])
@pytest.mark.parametrize("kind", ["token", "key"])
def test_unusual_paths_neither_fail_nor_bypass_the_gate(gate, path, kind):
    paths = []

    async def app(scope, _receive, _send):
        paths.append(scope["path"])

    async def work():
        authorization = f"Bearer {gate.token}" if kind == "token" else bearer("acme-agent")
        headers = [(b"authorization", authorization.encode())]
        scope = {"type": "http", "path": path, "headers": headers}
        await Gate(app, gate.access)(scope, None, None)

    asyncio.run(work())
    run_path = f"/runs/{gate.run}{path}"
    is_inside = kind == "token" and path in ("/ws/../runs", "/v1")
    assert paths == [run_path if is_inside else path]


def test_basic_authentication_works_for_http_and_websocket(gate):
    authorization = basic(f"run:{gate.token}").decode()
    assert gate.ask(authorization, "GET", f"/runs/{gate.run}").status_code == 200
    with gate.connect("/ws", authorization) as socket:
        socket.send_json({"type": "reset", "data": {}})
        assert socket.receive_json()["type"] == "observation"


@pytest.mark.waits
def test_an_open_websocket_is_closed_after_its_credential_is_revoked(gate):
    messages = []

    def is_refused(socket):
        socket.send_json({"type": "state"})
        messages.append(socket.receive_json())
        return messages[-1]["type"] == "error"

    with gate.connect("/ws") as socket:
        socket.send_json({"type": "reset", "data": {}})
        assert socket.receive_json()["type"] == "observation"
        gate.access.write(without="acme")
        wait_for(lambda: is_refused(socket))
        assert messages[-1]["data"]["kind"] == "unauthorised"
        assert socket.receive()["type"] == "websocket.close"


@pytest.fixture
def local_client(tmp_path):
    """A client of a service without authentication, for pages of this machine only."""
    service = make.service.service(tmp_path, loopback_only=True)
    with TestClient(service.app, base_url="http://localhost:8000") as client:
        yield client


LOCAL_HOSTS = ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"]
FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.2",
    "192.168.0.7:8000",
    "0.0.0.0",
    "[::2]",
    "",
    "[",
]


@pytest.mark.parametrize("host", LOCAL_HOSTS)
def test_a_loopback_service_answers_pages_of_this_machine(local_client, host):
    headers = {"host": host, "origin": f"http://{host}"}
    run = local_client.post("/runs", json=OPENING, headers=headers).json()["run"]["id"]
    with local_client.websocket_connect(f"/runs/{run}/ws", headers=headers) as socket:
        socket.send_json({"type": "state"})
        assert socket.receive_json()["type"] == "state"


def rejection(local_client, headers):
    answer = local_client.post("/runs", json=OPENING, headers=headers)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "forbidden")
    with (
        pytest.raises(WebSocketDenialResponse) as error,
        local_client.websocket_connect("/runs/x/ws", headers=headers),
    ):
        pass
    assert error.value.status_code == 403
    return answer.json()["error"]["message"]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_loopback_service_rejects_other_host_names(local_client, host):
    assert "answers requests to localhost" in rejection(local_client, {"host": host})


@pytest.mark.parametrize(
    "origin", [*(f"http://{host}" for host in FOREIGN_HOSTS), "null", "file://", "localhost"]
)
def test_a_loopback_service_rejects_origins_of_other_sites(local_client, origin):
    assert "may not send requests here" in rejection(local_client, {"origin": origin})


def test_a_long_origin_is_shortened_in_the_error_message(local_client):
    message = rejection(local_client, {"origin": "http://" + "x" * 10_000})
    assert len(message) < 200


def test_a_service_with_authentication_answers_any_host_name(gate):
    answer = gate.served.http(
        "GET", "/manifest", authorization=bearer("acme-agent"), host="simulator.acme.example"
    )
    assert answer.status_code == 200


def test_opening_a_run_returns_its_token_and_other_requests_do_not(gate):
    assert TOKENS.token(gate.run, "acme") == gate.token
    for answer in (gate.own("GET", f"/runs/{gate.run}"), gate.own("GET", "/manifest")):
        assert gate.token[-64:] not in json.dumps(answer.json())

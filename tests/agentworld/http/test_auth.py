"""The gate: forms of a credential, what a run's token opens, and whom a machine trusts."""

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
    ("value", "found"),
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
def test_a_credential_is_a_bearer_token_or_a_basic_password(value, found):
    assert credential([(b"accept", b"*/*"), (b"authorization", value)]) == found


def test_two_authorization_headers_give_no_credential():
    mine, other = (b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")
    assert credential([mine, other]) is None
    assert credential([mine, mine]) is None


@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda data: b"Basic " + data))
@example(b"Basic Og==")
def test_any_authorization_header_gives_a_nonempty_credential_or_none(value):
    found = credential([(b"authorization", value)])
    assert found is None or found


class Gated:
    """A service with a tenant's run, accessed with the run's own token."""

    def __init__(self, serve, folder):
        self.access = make.access.Checked(folder)
        self.served = serve(access=self.access)
        opened = self.ask(bearer("acme-agent"), "POST", "/runs", OPENING).json()
        self.run, self.token = opened["run"]["id"], opened["token"]

    def ask(self, who, method, path, body=None):
        return self.served.http(method, path, body, authorization=who)

    def own(self, method, path, body=None):
        return self.ask(f"Bearer {self.token}", method, path, body)

    def connect(self, path, who=None):
        headers = {"authorization": who or f"Bearer {self.token}"}
        return TestClient(self.served.transport.app).websocket_connect(path, headers=headers)


@pytest.fixture
def gated(serve, tmp_path):
    return Gated(serve, tmp_path)


def test_a_runs_token_gives_access_only_to_its_run(gated):
    other = gated.ask(bearer("acme-agent"), "POST", "/runs", OPENING).json()["run"]["id"]
    begun = gated.ask(bearer("acme-agent"), "POST", "/episodes", {"run": other}).json()["episode"]
    assert gated.own("GET", f"/runs/{gated.run}").json()["tenant"] == "acme"
    for method, path, body in [
        ("GET", f"/runs/{other}", None),
        ("POST", f"/runs/{other}/close", {"final_weights": records.digest("final")}),
        ("POST", "/episodes", {"run": other}),
        ("POST", "/steps", {"episode": begun, "action": "ls", "step": 1}),
        ("GET", f"/episodes/{begun}", None),
        ("POST", "/episodes", {"run": gated.run, "fork": {"episode": begun, "step": 0}}),
    ]:
        assert (path, gated.own(method, path, body).status_code) == (path, 404)


def test_a_runs_token_cannot_open_a_new_run(gated):
    answer = gated.own("POST", "/runs", OPENING)
    assert (answer.status_code, "token" in answer.json()) == (422, False)
    assert "cannot open another run" in answer.json()["error"]["message"]


def test_a_runs_token_can_play_and_close_its_run(gated):
    episode = gated.own("POST", "/episodes", {"run": gated.run}).json()["episode"]
    step = {"episode": episode, "action": "echo a", "step": 1}
    assert gated.own("POST", "/steps", step).json()["observation"] == "a\n[0] ~"
    closing = {"final_weights": records.digest("final")}
    assert gated.own("POST", f"/runs/{gated.run}/close", closing).is_success
    refused = gated.own("POST", "/episodes", {"run": gated.run})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict")


def test_only_a_runs_token_reveals_that_its_run_is_missing_from_the_ledger(gated):
    token = f"Bearer {gated.access.run_token('0' * 32, 'acme')}"
    for who, message in [
        (token, "was opened and the ledger has it no more; have it restored"),
        (bearer("acme-agent"), "open one by POST /runs"),
    ]:
        for path, body in [("/episodes", {"run": "0" * 32}), (f"/runs/{'0' * 32}/reset", {})]:
            refused = gated.ask(who, "POST", path, body)
            assert (refused.status_code, refused.json()["error"]["kind"]) == (404, "not-found")
            assert message in refused.json()["error"]["message"]


@pytest.mark.waits
def test_with_a_runs_token_protocol_paths_at_the_root_use_that_run(gated):
    episode = gated.own("POST", "/reset", {}).json()["observation"]["episode"]
    step = {"action": {"action": "echo a"}, "episode_id": episode}
    assert gated.own("POST", "/step", step).json()["observation"]["run"] == gated.run
    assert gated.own("GET", f"/state?episode_id={episode}").json()["step_count"] == 1
    for path in ("/schema", "/metadata", "/health", "/openapi.json", "/v1/models"):
        assert gated.own("GET", path).status_code == 200
    listing = {"jsonrpc": "2.0", "method": "tools/list"}
    assert gated.own("POST", "/mcp", listing).json()["result"]["tools"]
    with gated.connect("/ws") as socket:
        socket.send_json({"type": "reset", "data": {"episode_id": episode}})
        assert socket.receive_json()["data"]["observation"]["run"] == gated.run


@pytest.mark.parametrize(
    "path", ["/reset", "/step", "/state", "/schema", "/metadata", "/v1/models"]
)
def test_without_a_runs_token_protocol_paths_at_the_root_are_not_found(gated, path):
    assert gated.ask(bearer("acme-agent"), "GET", path).status_code == 404


@pytest.mark.parametrize("path", ["*", "", "ws", "//ws", "/ws/../runs", "/%2e%2e/runs", "/v1"])
@pytest.mark.parametrize("who", ["token", "key"])
def test_unusual_paths_neither_fail_nor_bypass_the_gate(gated, path, who):
    sent = []

    async def app(scope, _receive, _send):
        sent.append(scope["path"])

    async def work():
        told = f"Bearer {gated.token}" if who == "token" else bearer("acme-agent")
        headers = [(b"authorization", told.encode())]
        scope = {"type": "http", "path": path, "headers": headers}
        await Gate(app, gated.access)(scope, None, None)

    asyncio.run(work())
    of_run = f"/runs/{gated.run}{path}"
    inside = who == "token" and path in ("/ws/../runs", "/v1")
    assert sent == [of_run if inside else path]


def test_basic_authentication_works_for_http_and_websocket(gated):
    told = basic(f"run:{gated.token}").decode()
    assert gated.ask(told, "GET", f"/runs/{gated.run}").status_code == 200
    with gated.connect("/ws", told) as socket:
        socket.send_json({"type": "reset", "data": {}})
        assert socket.receive_json()["type"] == "observation"


@pytest.mark.waits
def test_an_open_websocket_is_closed_after_its_credential_is_revoked(gated):
    told = []

    def is_refused(socket):
        socket.send_json({"type": "state"})
        told.append(socket.receive_json())
        return told[-1]["type"] == "error"

    with gated.connect("/ws") as socket:
        socket.send_json({"type": "reset", "data": {}})
        assert socket.receive_json()["type"] == "observation"
        gated.access.write(without="acme")
        wait_for(lambda: is_refused(socket))
        assert told[-1]["data"]["kind"] == "unauthorised"
        assert socket.receive()["type"] == "websocket.close"


@pytest.fixture
def here(tmp_path):
    """A service without authentication, for pages of this machine only."""
    served = make.service.service(tmp_path, loopback_only=True)
    with TestClient(served.app, base_url="http://localhost:8000") as client:
        yield client


LOCAL = ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"]
STRANGE = [
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


@pytest.mark.parametrize("host", LOCAL)
def test_a_loopback_service_answers_pages_of_this_machine(here, host):
    headers = {"host": host, "origin": f"http://{host}"}
    run = here.post("/runs", json=OPENING, headers=headers).json()["run"]["id"]
    with here.websocket_connect(f"/runs/{run}/ws", headers=headers) as socket:
        socket.send_json({"type": "state"})
        assert socket.receive_json()["type"] == "state"


def turned_away(here, headers):
    answer = here.post("/runs", json=OPENING, headers=headers)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "forbidden")
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        here.websocket_connect("/runs/x/ws", headers=headers),
    ):
        pass
    assert refused.value.status_code == 403
    return answer.json()["error"]["message"]


@pytest.mark.parametrize("host", STRANGE)
def test_a_loopback_service_rejects_other_host_names(here, host):
    assert "answers requests to localhost" in turned_away(here, {"host": host})


@pytest.mark.parametrize(
    "origin", [*(f"http://{host}" for host in STRANGE), "null", "file://", "localhost"]
)
def test_a_loopback_service_rejects_origins_of_other_sites(here, origin):
    assert "may not send requests here" in turned_away(here, {"origin": origin})


def test_a_long_origin_is_shortened_in_the_error_message(here):
    message = turned_away(here, {"origin": "http://" + "x" * 10_000})
    assert len(message) < 200


def test_a_service_with_authentication_answers_any_host_name(gated):
    answer = gated.served.http(
        "GET", "/manifest", authorization=bearer("acme-agent"), host="simulator.acme.example"
    )
    assert answer.status_code == 200


def test_opening_a_run_returns_its_token_and_other_requests_do_not(gated):
    assert TOKENS.token(gated.run, "acme") == gated.token
    for answer in (gated.own("GET", f"/runs/{gated.run}"), gated.own("GET", "/manifest")):
        assert gated.token[-64:] not in json.dumps(answer.json())

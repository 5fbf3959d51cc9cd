"""Access control of every route."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

import make.access
from agentworld.records.episode import new_name
from make import records
from make.access import TOKENS, bearer
from make.served import serving

UNKNOWN = new_name()
OPENING = {"agent": "a", "starting_weights": records.digest("starting")}
ACTION = {"action": {"action": "ls"}}
STEP = {"action": "echo mine", "step": 1}
MODEL = records.manifest().digest
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "echo mine"}]}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CLOSING = {"final_weights": records.digest("final")}
CLAIM = {name: records.digest(name) for name in ("artifact", "starting_weights", "simulator")} | {
    "agent": "a"
}

RUN_ROUTES = {
    ("GET", "/runs/{run}"): None,
    ("POST", "/runs/{run}/close"): lambda own, run, episode: CLOSING,
    ("PUT", "/runs/{run}/edge"): lambda own, run, episode: CLAIM,
    ("POST", "/episodes"): lambda own, run, episode: {"run": run},
    ("POST", "/steps"): lambda own, run, episode: {**STEP, "episode": episode},
    ("GET", "/episodes/{episode}"): None,
    ("POST", "/episodes/{episode}/close"): None,
    ("POST", "/episodes/{episode}/mcp"): lambda own, run, episode: LIST_TOOLS,
    ("POST", "/runs/{run}/reset"): lambda own, run, episode: {},
    ("POST", "/runs/{run}/step"): lambda own, run, episode: {**ACTION, "episode_id": episode},
    ("GET", "/runs/{run}/state?episode_id={episode}"): None,
    ("GET", "/runs/{run}/schema"): None,
    ("GET", "/runs/{run}/metadata"): None,
    ("GET", "/runs/{run}/health"): None,
    ("GET", "/runs/{run}/openapi.json"): None,
    ("POST", "/runs/{run}/mcp"): lambda own, run, episode: LIST_TOOLS,
    ("GET", "/runs/{run}/v1/models"): None,
    ("GET", "/runs/{run}/v1/models/{model}"): None,
    ("POST", "/runs/{run}/v1/chat/completions"): lambda own, run, episode: CHAT,
}
"""Every route that names a run or an episode, in its path or in its body."""

OWN_RUN_ROUTES = {
    "a fork": ("POST", "/episodes", lambda own, e: {"run": own, "fork": {"episode": e, "step": 0}}),
    "a replay": (
        "POST",
        "/episodes",
        lambda own, e: {"run": own, "replay": {"episode": e, "step": 0}},
    ),
    "a step": ("POST", "/runs/{own}/step", lambda own, e: {**ACTION, "episode_id": e}),
    "a state": ("GET", "/runs/{own}/state?episode_id={e}", lambda own, e: None),
    "a completion": (
        "POST",
        "/runs/{own}/v1/chat/completions",
        lambda own, e: {**CHAT, "metadata": {"episode": e}},
    ),
}
"""Routes that name an episode besides a run, where the run may be the caller's own."""


class TwoTenants:
    """A service with a run and an episode of each of two tenants."""

    def __init__(self, serve, folder):
        self.access = make.access.Checked(folder)
        self.served = serve(access=self.access)
        self.client = TestClient(self.served.transport.app, raise_server_exceptions=False)

    def ask(self, caller, method, path, body=None, **headers):
        all_headers = {"authorization": bearer(caller)} if caller else {}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        accept = {"accept": "application/json, text/event-stream"}
        return self.client.request(method, path, json=body, headers=accept | all_headers)

    def begin(self, caller):
        run = self.ask(caller, "POST", "/runs", OPENING).json()["run"]["id"]
        episode = self.ask(caller, "POST", "/episodes", {"run": run}).json()["episode"]
        self.ask(caller, "POST", "/steps", {**STEP, "episode": episode})
        return run, episode

    def named(self, caller, method, path, run, episode):
        """A request of the table, for these names."""
        body = RUN_ROUTES[method, path]
        payload = body and body(self.own, run, episode)
        url = path.format(run=run, episode=episode, model=MODEL)
        return self.ask(caller, method, url, payload)

    def logs(self):
        ledger = self.served.ledger
        return [len(ledger.logs.entries(run)) for run in (self.run, self.own)]


@contextmanager
def open_service(serve, folder):
    service = TwoTenants(serve, folder)
    with service.client:
        service.run, service.episode = service.begin("rival-agent")
        service.own, service.own_episode = service.begin("acme-agent")
        yield service


@pytest.fixture
def service(serve, tmp_path):
    with open_service(serve, tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """One service for all tests that change nothing."""
    folder = tmp_path_factory.mktemp("unchanged")
    with serving(folder) as serve, open_service(serve, folder) as service:
        yield service


def routes(app_routes: list[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every method and path that an app answers; WEBSOCKET is the method of a socket."""
    for route in app_routes:
        if isinstance(route, Mount):
            yield from routes(route.routes or [Route("/", print)], prefix + route.path)
        elif isinstance(route, WebSocketRoute):
            yield "WEBSOCKET", prefix + route.path
        else:
            assert isinstance(route, Route)
            yield from ((method, prefix + route.path) for method in route.methods or {"GET"})


@pytest.mark.waits
def test_every_route_except_health_requires_a_valid_credential(service):
    app = service.served.transport.app
    pairs = sorted(routes(app.routes))
    assert {path for _, path in pairs} >= set(app.openapi()["paths"])
    for method, path in [*pairs, ("GET", "/nowhere"), ("PUT", "/runs"), ("OPTIONS", "/steps")]:
        names = {"model": MODEL, "simulator": MODEL, "alias": "stable", "name": "a"}
        url = path.format(run=service.run, episode=service.episode, **names)
        for caller in (None, "nobody-agent"):
            status, kind = refusal_of(service, caller, method, url)
            expected = (200, None) if path == "/health" else (401, "unauthorised")
            assert (path, status, kind) == (path, *expected)


def refusal_of(service, caller, method, path):
    if method == "WEBSOCKET":
        headers = {"authorization": bearer(caller)} if caller else {}
        with (
            pytest.raises(WebSocketDenialResponse) as caught,
            service.client.websocket_connect(path, headers=headers),
        ):
            pass
        answer = caught.value
    else:
        answer = service.ask(caller, method, path)
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    body = answer.json() if answer.content else {"error": {"kind": "unauthorised"}}  # for HEAD
    error = body.get("error", {})
    return answer.status_code, error.get("kind", error.get("code"))  # OpenAI's field


def test_the_table_holds_every_route_that_names_a_run_or_an_episode(unchanged):
    paths = {
        (method, path)
        for method, path in routes(unchanged.served.transport.app.routes)
        if ("{run}" in path or "{episode}" in path) and method not in ("HEAD", "WEBSOCKET")
    }
    table = {(method, path.partition("?")[0]) for method, path in RUN_ROUTES}
    assert table - paths == {("POST", "/episodes"), ("POST", "/steps")}
    assert paths - table == set()


@pytest.mark.waits
@pytest.mark.parametrize(("method", "path"), RUN_ROUTES, ids=map(" ".join, RUN_ROUTES))
def test_runs_and_episodes_of_another_tenant_look_nonexistent(service, method, path):
    before = service.logs()
    foreign = service.named("acme-agent", method, path, service.run, service.episode)
    unknown = service.named("acme-agent", method, path, UNKNOWN, UNKNOWN)
    assert foreign.status_code == unknown.status_code == 404
    text = foreign.text.replace(service.run, UNKNOWN).replace(service.episode, UNKNOWN)
    assert text == unknown.text
    assert service.logs() == before
    assert service.named("acme-agent", method, path, service.own, service.own_episode).is_success


@pytest.mark.waits
def test_a_run_token_cannot_attest_an_edge(service):
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    token = service.ask("acme-agent", "POST", "/runs", opening).json()["token"]
    headers = {"authorization": f"Bearer {token}"}
    answer = service.client.put(f"/runs/{service.own}/edge", json=CLAIM, headers=headers)
    assert not answer.is_success
    assert service.served.ledger.attestations.find("edge") == []


@pytest.mark.waits
@pytest.mark.parametrize(("method", "path", "body"), OWN_RUN_ROUTES.values(), ids=OWN_RUN_ROUTES)
def test_an_episode_of_another_tenant_looks_nonexistent_in_the_callers_run(
    service, method, path, body
):
    def ask(episode):
        url = path.format(own=service.own, e=episode)
        return service.ask("acme-agent", method, url, body(service.own, episode))

    foreign, unknown = ask(service.episode), ask(UNKNOWN)
    assert foreign.status_code == 404
    assert foreign.text.replace(service.episode, UNKNOWN) == unknown.text
    assert ask(service.own_episode).is_success


@pytest.mark.waits
@pytest.mark.parametrize("state", ["closed", "erased", "of another simulator"])
def test_errors_reveal_no_state_of_an_episode_of_another_tenant(service, serve, state):
    if state == "of another simulator":
        service.client = TestClient(serve(access=service.access, context_tokens=512).transport.app)
    else:
        assert service.ask("rival-agent", "POST", f"/episodes/{service.episode}/close").is_success
    if state == "erased":
        service.served.ledger.erase_texts(service.episode)
    for method, path in RUN_ROUTES:
        foreign = service.named("acme-agent", method, path, service.run, service.episode)
        unknown = service.named("acme-agent", method, path, UNKNOWN, UNKNOWN)
        text = foreign.text.replace(service.run, UNKNOWN).replace(service.episode, UNKNOWN)
        assert (foreign.status_code, text) == (404, unknown.text)


def exchange(service, authorization, path, *requests):
    """Sends frames over a socket and returns the answers."""
    with service.client.websocket_connect(path, headers={"authorization": authorization}) as socket:
        answers = []
        for kind, data in requests:
            socket.send_text(json.dumps({"type": kind, "data": data}))
            answers.append(socket.receive_json())
    return answers


@pytest.mark.waits
def test_a_run_of_another_tenant_looks_nonexistent_over_a_socket(service):
    requests = ("reset", {}), ("reset", {"episode_id": service.episode}), ("step", {"action": "ls"})
    (foreign, unknown) = (
        exchange(service, bearer("acme-agent"), f"/runs/{run}/ws", *requests)
        for run in (service.run, UNKNOWN)
    )
    assert {answer["type"] for answer in foreign} == {"error"}
    assert foreign[0]["data"]["kind"] == "not-found"
    assert json.dumps(foreign).replace(service.run, UNKNOWN) == json.dumps(unknown)


@pytest.mark.waits
@pytest.mark.parametrize("path", ["/runs", "/episodes"])
def test_an_idempotency_key_of_another_tenant_conflicts_and_opens_nothing(service, path):
    before = service.logs()
    key, body = (
        (service.run, OPENING) if path == "/runs" else (service.episode, {"run": service.own})
    )
    answer = service.ask("acme-agent", "POST", path, body, idempotency_key=key)
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"]) == (409, "conflict")
    assert error["message"].startswith("the ledger already holds this")
    assert service.logs() == before


@pytest.mark.waits
def test_a_conflict_with_a_name_of_another_simulator_does_not_reveal_its_digest(service, serve):
    service.client = TestClient(serve(access=service.access, context_tokens=512).transport.app)
    run = service.ask("acme-agent", "POST", "/runs", OPENING).json()["run"]["id"]
    for path, body, key in [
        ("/runs", OPENING, service.run),
        ("/episodes", {"run": run}, service.episode),
    ]:
        answer = service.ask("acme-agent", "POST", path, body, idempotency_key=key)
        assert (path, answer.status_code) == (path, 409)
        assert records.manifest().digest not in answer.text


@pytest.mark.waits
def test_another_api_key_of_the_tenant_cannot_repeat_the_opening_of_a_run(service):
    key = new_name()
    for caller, status in [("acme-agent", 200), ("acme-second", 409), ("acme-agent", 200)]:
        answer = service.ask(caller, "POST", "/runs", OPENING, idempotency_key=key)
        assert (caller, answer.status_code) == (caller, status)


@pytest.mark.waits
def test_a_run_records_the_authenticated_caller_as_its_opener(service):
    opening = {**OPENING, "opened_by": "the boss"}
    run = service.ask("acme-agent", "POST", "/runs", opening).json()["run"]
    assert (run["opening"]["opened_by"], run["tenant"]) == ("acme/agent", "acme")


@pytest.mark.parametrize(("method", "path"), RUN_ROUTES, ids=map(" ".join, RUN_ROUTES))
def test_an_operator_gets_the_same_refusal_for_existing_and_unknown_runs(unchanged, method, path):
    answers = {
        unchanged.named("acme-operator", method, path, run, episode).text
        for run, episode in [
            (unchanged.own, unchanged.own_episode),
            (unchanged.run, unchanged.episode),
            (UNKNOWN, UNKNOWN),
        ]
    }
    (answer,) = answers
    assert "lacks the role agent" in json.loads(answer)["error"]["message"]


@pytest.mark.parametrize(("method", "path"), RUN_ROUTES, ids=map(" ".join, RUN_ROUTES))
def test_an_auditor_reads_runs_and_episodes_of_every_tenant_and_changes_nothing(
    unchanged, method, path
):
    before = unchanged.logs()
    may_read = method == "GET" or path.endswith("/mcp")
    for run, episode in [
        (unchanged.run, unchanged.episode),
        (unchanged.own, unchanged.own_episode),
    ]:
        answer = unchanged.named("office-auditor", method, path, run, episode)
        assert answer.status_code == (200 if may_read else 403)
    if may_read:
        unknown = unchanged.named("office-auditor", method, path, UNKNOWN, UNKNOWN)
        assert unknown.status_code == 404
    assert unchanged.logs() == before


def test_an_auditor_calls_no_tool(unchanged):
    call = {"name": "bash", "arguments": {"command": "ls"}}
    body = {**LIST_TOOLS, "method": "tools/call", "params": call}
    before, path = unchanged.logs(), f"/episodes/{unchanged.episode}/mcp"
    error = unchanged.ask("office-auditor", "POST", path, body).json()["error"]
    assert error["data"]["kind"] == "forbidden"
    assert unchanged.logs() == before


def test_only_an_operator_may_read_metrics(unchanged):
    for caller, status in [("acme-operator", 200), ("acme-agent", 403), ("office-auditor", 403)]:
        assert (caller, unchanged.ask(caller, "GET", "/metrics").status_code) == (caller, status)


def test_an_auditor_opens_no_run(unchanged):
    answer = unchanged.ask("office-auditor", "POST", "/runs", OPENING)
    assert answer.status_code == 403
    message = answer.json()["error"]["message"]
    assert "office/auditor of tenant office lacks the role agent" in message


@pytest.mark.waits
def test_an_agent_with_the_auditor_role_replays_an_episode_of_another_tenant(service):
    run = service.ask("office-both", "POST", "/runs", OPENING).json()["run"]["id"]
    replay = {"run": run, "replay": {"episode": service.episode, "step": 1}}
    episode = service.ask("office-both", "POST", "/episodes", replay).json()["episode"]
    body = {**STEP, "episode": episode}
    assert service.ask("office-both", "POST", "/steps", body).json()["observation"] == "mine\n[0] ~"


@pytest.mark.parametrize("caller", ["acme-agent", "acme-operator", "office-auditor"])
def test_every_authenticated_caller_may_read_the_manifest(unchanged, caller):
    assert unchanged.ask(caller, "GET", "/manifest").status_code == 200


def test_clients_of_two_tenants_each_get_their_own_run(service):
    async def work():
        clients = [
            service.served.client(credential=make.access.key(caller))
            for caller in ("acme-agent", "rival-agent")
        ]
        runs = (service.own, service.run)
        results = [await client.resume_run(run) for client, run in zip(clients, runs, strict=True)]
        for client in clients:
            await client.close()
        return [run.tenant for run in results]

    assert asyncio.run(work()) == ["acme", "rival"]


@pytest.mark.waits
def test_a_removed_tenant_is_rejected_and_regains_its_runs_when_added_again(service):
    token = TOKENS.token(service.own, "acme")
    service.access.write(without="acme")
    for credential in (bearer("acme-agent"), f"Bearer {token}"):
        answer = service.ask(None, "GET", f"/runs/{service.own}", authorization=credential)
        assert answer.status_code == 401
    service.access.write()
    assert service.ask("acme-agent", "GET", f"/runs/{service.own}").json()["num_steps"] == 1

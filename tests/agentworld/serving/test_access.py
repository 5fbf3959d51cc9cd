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
TAKEN = {"action": "echo mine", "step": 1}
MODEL = records.manifest().digest
ASKING = {"model": MODEL, "messages": [{"role": "user", "content": "echo mine"}]}
LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CLOSING = {"final_weights": records.digest("final")}
CLAIM = {name: records.digest(name) for name in ("artifact", "starting_weights", "simulator")} | {
    "agent": "a"
}

NAMING = {
    ("GET", "/runs/{run}"): None,
    ("POST", "/runs/{run}/close"): lambda own, run, episode: CLOSING,
    ("PUT", "/runs/{run}/edge"): lambda own, run, episode: CLAIM,
    ("POST", "/episodes"): lambda own, run, episode: {"run": run},
    ("POST", "/steps"): lambda own, run, episode: {**TAKEN, "episode": episode},
    ("GET", "/episodes/{episode}"): None,
    ("POST", "/episodes/{episode}/close"): None,
    ("POST", "/episodes/{episode}/mcp"): lambda own, run, episode: LISTING,
    ("POST", "/runs/{run}/reset"): lambda own, run, episode: {},
    ("POST", "/runs/{run}/step"): lambda own, run, episode: {**ACTION, "episode_id": episode},
    ("GET", "/runs/{run}/state?episode_id={episode}"): None,
    ("GET", "/runs/{run}/schema"): None,
    ("GET", "/runs/{run}/metadata"): None,
    ("GET", "/runs/{run}/health"): None,
    ("GET", "/runs/{run}/openapi.json"): None,
    ("POST", "/runs/{run}/mcp"): lambda own, run, episode: LISTING,
    ("GET", "/runs/{run}/v1/models"): None,
    ("GET", "/runs/{run}/v1/models/{model}"): None,
    ("POST", "/runs/{run}/v1/chat/completions"): lambda own, run, episode: ASKING,
}
"""Every route that names a run or an episode, in its path or in its body."""

IN_OWN_RUN = {
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
        lambda own, e: {**ASKING, "metadata": {"episode": e}},
    ),
}
"""Routes that name an episode besides a run, where the run may be the caller's own."""


class Two:
    """A service with a run and an episode of two tenants."""

    def __init__(self, serve, folder):
        self.access = make.access.Checked(folder)
        self.served = serve(access=self.access)
        self.client = TestClient(self.served.transport.app, raise_server_exceptions=False)

    def ask(self, who, method, path, body=None, **headers):
        told = {"authorization": bearer(who)} if who else {}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        accept = {"accept": "application/json, text/event-stream"}
        return self.client.request(method, path, json=body, headers=accept | told)

    def begin(self, who):
        run = self.ask(who, "POST", "/runs", OPENING).json()["run"]["id"]
        episode = self.ask(who, "POST", "/episodes", {"run": run}).json()["episode"]
        self.ask(who, "POST", "/steps", {**TAKEN, "episode": episode})
        return run, episode

    def named(self, who, method, path, run, episode):
        """A request of the table, for these names."""
        body = NAMING[method, path]
        sent = body and body(self.own, run, episode)
        where = path.format(run=run, episode=episode, model=MODEL)
        return self.ask(who, method, where, sent)

    def logs(self):
        ledger = self.served.ledger
        return [len(ledger.logs.entries(run)) for run in (self.run, self.own)]


@contextmanager
def opened(serve, folder):
    service = Two(serve, folder)
    with service.client:
        service.run, service.episode = service.begin("rival-agent")
        service.own, service.own_episode = service.begin("acme-agent")
        yield service


@pytest.fixture
def two(serve, tmp_path):
    with opened(serve, tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """One service for all tests that change nothing."""
    folder = tmp_path_factory.mktemp("unchanged")
    with serving(folder) as serve, opened(serve, folder) as service:
        yield service


def routes(found: list[BaseRoute], before: str = "") -> Iterator[tuple[str, str]]:
    """Every method and path that an app answers; WEBSOCKET stands for a socket's."""
    for route in found:
        if isinstance(route, Mount):
            yield from routes(route.routes or [Route("/", print)], before + route.path)
        elif isinstance(route, WebSocketRoute):
            yield "WEBSOCKET", before + route.path
        else:
            assert isinstance(route, Route)
            yield from ((method, before + route.path) for method in route.methods or {"GET"})


@pytest.mark.waits
def test_every_route_except_health_requires_a_valid_credential(two):
    app = two.served.transport.app
    found = sorted(routes(app.routes))
    assert {path for _, path in found} >= set(app.openapi()["paths"])
    for method, path in [*found, ("GET", "/nowhere"), ("PUT", "/runs"), ("OPTIONS", "/steps")]:
        known = {"model": MODEL, "simulator": MODEL, "alias": "stable", "name": "a"}
        where = path.format(run=two.run, episode=two.episode, **known)
        for who in (None, "nobody-agent"):
            status, kind = turned_away(two, who, method, where)
            wanted = (200, None) if path == "/health" else (401, "unauthorised")
            assert (path, status, kind) == (path, *wanted)


def turned_away(two, who, method, path):
    if method == "WEBSOCKET":
        headers = {"authorization": bearer(who)} if who else {}
        with (
            pytest.raises(WebSocketDenialResponse) as refused,
            two.client.websocket_connect(path, headers=headers),
        ):
            pass
        answer = refused.value
    else:
        answer = two.ask(who, method, path)
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    told = answer.json() if answer.content else {"error": {"kind": "unauthorised"}}  # of a HEAD
    error = told.get("error", {})
    return answer.status_code, error.get("kind", error.get("code"))  # in OpenAI's words


def test_the_table_holds_every_route_that_names_a_run_or_an_episode(unchanged):
    paths = {
        (method, path)
        for method, path in routes(unchanged.served.transport.app.routes)
        if ("{run}" in path or "{episode}" in path) and method not in ("HEAD", "WEBSOCKET")
    }
    table = {(method, path.partition("?")[0]) for method, path in NAMING}
    assert table - paths == {("POST", "/episodes"), ("POST", "/steps")}
    assert paths - table == set()


@pytest.mark.waits
@pytest.mark.parametrize(("method", "path"), NAMING, ids=map(" ".join, NAMING))
def test_runs_and_episodes_of_another_tenant_look_nonexistent(two, method, path):
    before = two.logs()
    theirs = two.named("acme-agent", method, path, two.run, two.episode)
    nobodys = two.named("acme-agent", method, path, UNKNOWN, UNKNOWN)
    assert theirs.status_code == nobodys.status_code == 404
    told = theirs.text.replace(two.run, UNKNOWN).replace(two.episode, UNKNOWN)
    assert told == nobodys.text
    assert two.logs() == before
    assert two.named("acme-agent", method, path, two.own, two.own_episode).is_success


@pytest.mark.waits
def test_a_run_token_cannot_attest_an_edge(two):
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    token = two.ask("acme-agent", "POST", "/runs", opening).json()["token"]
    headers = {"authorization": f"Bearer {token}"}
    answer = two.client.put(f"/runs/{two.own}/edge", json=CLAIM, headers=headers)
    assert not answer.is_success
    assert two.served.ledger.attestations.find("edge") == []


@pytest.mark.waits
@pytest.mark.parametrize(("method", "path", "body"), IN_OWN_RUN.values(), ids=IN_OWN_RUN)
def test_an_episode_of_another_tenant_looks_nonexistent_in_the_callers_run(two, method, path, body):
    def ask(episode):
        where = path.format(own=two.own, e=episode)
        return two.ask("acme-agent", method, where, body(two.own, episode))

    theirs, nobodys = ask(two.episode), ask(UNKNOWN)
    assert theirs.status_code == 404
    assert theirs.text.replace(two.episode, UNKNOWN) == nobodys.text
    assert ask(two.own_episode).is_success


@pytest.mark.waits
@pytest.mark.parametrize("made", ["closed", "erased", "of another simulator"])
def test_errors_reveal_no_state_of_an_episode_of_another_tenant(two, serve, made):
    if made == "of another simulator":
        two.client = TestClient(serve(access=two.access, context_tokens=512).transport.app)
    else:
        assert two.ask("rival-agent", "POST", f"/episodes/{two.episode}/close").is_success
    if made == "erased":
        two.served.ledger.erase_texts(two.episode)
    for method, path in NAMING:
        theirs = two.named("acme-agent", method, path, two.run, two.episode)
        nobodys = two.named("acme-agent", method, path, UNKNOWN, UNKNOWN)
        told = theirs.text.replace(two.run, UNKNOWN).replace(two.episode, UNKNOWN)
        assert (theirs.status_code, told) == (404, nobodys.text)


def frames(two, who, path, *sent):
    """A socket's responses to these frames."""
    with two.client.websocket_connect(path, headers={"authorization": who}) as socket:
        answers = []
        for kind, data in sent:
            socket.send_text(json.dumps({"type": kind, "data": data}))
            answers.append(socket.receive_json())
    return answers


@pytest.mark.waits
def test_a_run_of_another_tenant_looks_nonexistent_over_a_socket(two):
    resets = ("reset", {}), ("reset", {"episode_id": two.episode}), ("step", {"action": "ls"})
    (theirs, nobodys) = (
        frames(two, bearer("acme-agent"), f"/runs/{run}/ws", *resets) for run in (two.run, UNKNOWN)
    )
    assert {answer["type"] for answer in theirs} == {"error"}
    assert theirs[0]["data"]["kind"] == "not-found"
    assert json.dumps(theirs).replace(two.run, UNKNOWN) == json.dumps(nobodys)


@pytest.mark.waits
@pytest.mark.parametrize("path", ["/runs", "/episodes"])
def test_an_idempotency_key_of_another_tenant_conflicts_and_opens_nothing(two, path):
    before = two.logs()
    key, sent = (two.run, OPENING) if path == "/runs" else (two.episode, {"run": two.own})
    answer = two.ask("acme-agent", "POST", path, sent, idempotency_key=key)
    told = answer.json()["error"]
    assert (answer.status_code, told["kind"]) == (409, "conflict")
    assert told["message"].startswith("the ledger already holds this")
    assert two.logs() == before


@pytest.mark.waits
def test_a_conflict_with_a_name_of_another_simulator_does_not_reveal_its_digest(two, serve):
    two.client = TestClient(serve(access=two.access, context_tokens=512).transport.app)
    run = two.ask("acme-agent", "POST", "/runs", OPENING).json()["run"]["id"]
    for path, body, name in [
        ("/runs", OPENING, two.run),
        ("/episodes", {"run": run}, two.episode),
    ]:
        answer = two.ask("acme-agent", "POST", path, body, idempotency_key=name)
        assert (path, answer.status_code) == (path, 409)
        assert records.manifest().digest not in answer.text


@pytest.mark.waits
def test_another_api_key_of_the_tenant_cannot_repeat_the_opening_of_a_run(two):
    name = new_name()
    for who, status in [("acme-agent", 200), ("acme-second", 409), ("acme-agent", 200)]:
        answer = two.ask(who, "POST", "/runs", OPENING, idempotency_key=name)
        assert (who, answer.status_code) == (who, status)


@pytest.mark.waits
def test_a_run_records_the_authenticated_caller_as_its_opener(two):
    told = {**OPENING, "opened_by": "the boss"}
    run = two.ask("acme-agent", "POST", "/runs", told).json()["run"]
    assert (run["opening"]["opened_by"], run["tenant"]) == ("acme/agent", "acme")


@pytest.mark.parametrize(("method", "path"), NAMING, ids=map(" ".join, NAMING))
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


@pytest.mark.parametrize(("method", "path"), NAMING, ids=map(" ".join, NAMING))
def test_an_auditor_reads_runs_and_episodes_of_every_tenant_and_changes_nothing(
    unchanged, method, path
):
    before = unchanged.logs()
    reads = method == "GET" or path.endswith("/mcp")
    for run, episode in [
        (unchanged.run, unchanged.episode),
        (unchanged.own, unchanged.own_episode),
    ]:
        answer = unchanged.named("office-auditor", method, path, run, episode)
        assert answer.status_code == (200 if reads else 403)
    if reads:
        nobodys = unchanged.named("office-auditor", method, path, UNKNOWN, UNKNOWN)
        assert nobodys.status_code == 404
    assert unchanged.logs() == before


def test_an_auditor_calls_no_tool(unchanged):
    call = {"name": "bash", "arguments": {"command": "ls"}}
    body = {**LISTING, "method": "tools/call", "params": call}
    before, path = unchanged.logs(), f"/episodes/{unchanged.episode}/mcp"
    error = unchanged.ask("office-auditor", "POST", path, body).json()["error"]
    assert error["data"]["kind"] == "forbidden"
    assert unchanged.logs() == before


def test_only_an_operator_may_read_metrics(unchanged):
    for who, status in [("acme-operator", 200), ("acme-agent", 403), ("office-auditor", 403)]:
        assert (who, unchanged.ask(who, "GET", "/metrics").status_code) == (who, status)


def test_an_auditor_opens_no_run(unchanged):
    answer = unchanged.ask("office-auditor", "POST", "/runs", OPENING)
    assert answer.status_code == 403
    message = answer.json()["error"]["message"]
    assert "office/auditor of tenant office lacks the role agent" in message


@pytest.mark.waits
def test_an_agent_with_the_auditor_role_replays_an_episode_of_another_tenant(two):
    run = two.ask("office-both", "POST", "/runs", OPENING).json()["run"]["id"]
    replay = {"run": run, "replay": {"episode": two.episode, "step": 1}}
    episode = two.ask("office-both", "POST", "/episodes", replay).json()["episode"]
    body = {**TAKEN, "episode": episode}
    assert two.ask("office-both", "POST", "/steps", body).json()["observation"] == "mine\n[0] ~"


@pytest.mark.parametrize("who", ["acme-agent", "acme-operator", "office-auditor"])
def test_every_authenticated_caller_may_read_the_manifest(unchanged, who):
    assert unchanged.ask(who, "GET", "/manifest").status_code == 200


def test_clients_of_two_tenants_each_get_their_own_run(two):
    async def work():
        clients = [
            two.served.client(credential=make.access.key(who))
            for who in ("acme-agent", "rival-agent")
        ]
        runs = (two.own, two.run)
        mine = [await client.resume_run(run) for client, run in zip(clients, runs, strict=True)]
        for client in clients:
            await client.close()
        return [run.tenant for run in mine]

    assert asyncio.run(work()) == ["acme", "rival"]


@pytest.mark.waits
def test_a_removed_tenant_is_rejected_and_regains_its_runs_when_added_again(two):
    token = TOKENS.token(two.own, "acme")
    two.access.write(without="acme")
    for credential in (bearer("acme-agent"), f"Bearer {token}"):
        answer = two.ask(None, "GET", f"/runs/{two.own}", authorization=credential)
        assert answer.status_code == 401
    two.access.write()
    assert two.ask("acme-agent", "GET", f"/runs/{two.own}").json()["num_steps"] == 1

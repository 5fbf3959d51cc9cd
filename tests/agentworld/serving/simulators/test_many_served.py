"""A service of two simulators with a shared ledger: each run is answered by its simulator."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import make.access
import make.many
from agentworld.audit.checks.run import Evidence, verify_run
from agentworld.client.simulator import SIMULATOR_HEADER, SimulatorClient
from agentworld.errors import Conflict, StoreError
from agentworld.http.schemas import Request
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIMULATOR_KEYS, load_trusted
from agentworld.storage.objects import WriteOnce
from make import records
from make.many import FIRST, NAMES, SECOND, Catalogue
from make.service import ACCESS, OPENING, listening

pytestmark = pytest.mark.compute

ONE, OTHER = FIRST.digest, SECOND.digest
CLOSING = {"final_weights": records.digest("final")}


class Replica:
    """A service with an HTTP client."""

    def __init__(self, folder, catalogue, access=ACCESS, kind=Ledger):
        self.app = make.many.app(folder, catalogue, access, kind)
        self.app_state = self.app.state.app_state
        self.ledger = self.app_state.episode_store.ledger
        self.http = TestClient(self.app, "http://localhost", raise_server_exceptions=False)

    def ask(self, method, path, body=None, **headers):
        http_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.request(method, path, json=body, headers=http_headers)

    def open(self, simulator=None, **headers):
        body = {**OPENING.model_dump(mode="json"), "simulator": simulator}
        return self.ask("POST", "/runs", body, **headers)

    def run(self, simulator, **headers):
        return self.open(simulator, **headers).json()["run"]["id"]

    def reset(self, run, **opening):
        return self.ask("POST", "/episodes", {"run": run, **opening})

    def episode(self, simulator):
        return self.reset(self.run(simulator)).json()["episode"]

    def step(self, episode, number=1, action="ls"):
        return self.ask("POST", "/steps", {"episode": episode, "action": action, "step": number})

    def metric_values(self):
        """The value of each series, by its name and the values of its labels."""
        families = text_string_to_metric_families(self.ask("GET", "/metrics").text)
        return {
            (sample.name.removeprefix("agentworld_"), *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }


@pytest.fixture
def catalogue():
    return Catalogue()


@pytest.fixture
def start(tmp_path, catalogue):
    """Starts a replica; all share one ledger."""
    replicas = []

    def start_replica(access=ACCESS, kind=Ledger):
        replica = Replica(tmp_path, catalogue, access, kind)
        replica.http.__enter__()
        replicas.append(replica)
        return replica

    yield start_replica
    for replica in replicas:
        replica.http.__exit__()


@pytest.fixture
def server(start):
    return start()


def problem(answer):
    return answer.status_code, answer.json()["error"]["kind"]


@pytest.mark.parametrize("names", [(ONE, OTHER), ("stable", "canary")])
def test_each_run_is_answered_by_its_named_simulator(server, catalogue, names):
    episodes = [server.episode(name) for name in names]
    for number in (1, 2):
        for episode, simulator in zip(episodes, (ONE, OTHER), strict=True):
            answer = server.step(episode, number, f"echo {number}")
            body = answer.json()
            assert body["observation"] == f"{NAMES[simulator]}: echo {number}\n[0] ~"
            assert body["simulator"] == answer.headers[SIMULATOR_HEADER] == simulator
    for simulator in (ONE, OTHER):
        assert len(catalogue.engines[simulator].requests) == 2
        (system, *_) = catalogue.engines[simulator].requests[0].messages
        assert system["content"].endswith(catalogue.manifests[simulator].control_text)


def test_a_run_without_a_simulator_is_refused(server):
    answer = server.open()
    assert problem(answer) == (422, "input")
    assert "name the run's as `simulator`" in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["gone", records.digest("nobody"), "sha256:../../x"])
def test_an_unknown_simulator_opens_no_run(server, name):
    assert problem(server.open(name)) == (404, "not-found")
    assert server.ledger.runs() == []


def test_a_run_is_refused_while_its_simulator_cannot_be_connected(server, catalogue):
    catalogue.failing = StoreError("the object store is gone")
    assert problem(server.open(ONE)) == (503, "store")
    catalogue.failing = None
    assert server.open(ONE).status_code == 200


def test_moving_an_alias_does_not_change_open_runs(server, catalogue):
    key = {"idempotency_key": "1" * 32}
    run = server.run("stable", **key)
    catalogue.aliases["stable"] = OTHER
    assert server.open("stable", **key).json()["run"]["simulator"] == ONE
    assert server.step(server.reset(run).json()["episode"]).json()["simulator"] == ONE
    assert server.open("stable").json()["run"]["simulator"] == OTHER


def test_an_idempotency_key_used_for_a_run_of_another_simulator_is_refused(server):
    server.run(ONE, idempotency_key="1" * 32)
    assert problem(server.open(OTHER, idempotency_key="1" * 32)) == (409, "conflict")


@pytest.mark.parametrize("kind", ["fork", "replay"])
def test_an_episode_of_another_simulator_cannot_be_forked_or_replayed(server, kind):
    source = server.episode(ONE)
    server.step(source)
    reference = {"episode": source, "step": 1}
    answer = server.reset(server.run(OTHER), **{kind: reference})
    assert problem(answer) == (409, "conflict")
    assert f"belongs to simulator {ONE}" in answer.json()["error"]["message"]
    assert answer.headers[SIMULATOR_HEADER] == OTHER
    own_answer = server.reset(server.ledger.episode(source).run, **{kind: reference})
    assert own_answer.json()["simulator"] == ONE


def test_another_replica_connects_the_simulator_and_continues_the_episode(server, start, catalogue):
    episode = server.episode(OTHER)
    server.step(episode, 1, "echo a")
    second = start()
    assert second.step(episode, 2, "echo b").json()["observation"] == "second: echo b\n[0] ~"
    assert list(second.app_state.simulators.connected) == [OTHER]
    assert catalogue.engines[OTHER].requests[-1].messages[-2]["content"] == "second: echo a\n[0] ~"


def recorded_method(name):
    """The ledger's method of this name, which records its calls."""

    def method(self, *arguments):
        self.requests.append(name)
        return getattr(Ledger, name)(self, *arguments)

    return method


class RecordingLedger(Ledger):
    """Records reads."""

    def __init__(self, url):
        super().__init__(url)
        self.requests = []

    owner, run_of, run, episode = map(recorded_method, ("owner", "run_of", "run", "episode"))


def test_a_step_of_a_cached_episode_does_not_read_the_ledger(start):
    server = start(kind=RecordingLedger)
    episodes = [server.episode(simulator) for simulator in (ONE, OTHER)]
    assert server.ledger.requests
    server.ledger.requests.clear()
    for number in (1, 2, 3):
        for episode in episodes:
            assert server.step(episode, number).status_code == 200
    assert server.ledger.requests == []


def test_a_simulator_refuses_a_step_of_a_cached_episode_of_another_simulator(server):
    episode, _ = server.episode(OTHER), server.episode(ONE)
    service = server.app_state.simulators.connected[ONE]
    with pytest.raises(Conflict, match=f"belongs to simulator {OTHER} and not to"):
        server.http.portal.call(service.step, episode, Request(1, "ls"))
    assert server.ledger.episode(episode).steps == ()


def test_runs_of_a_deleted_simulator_can_be_read_and_closed_but_not_continued(
    server, start, catalogue
):
    episode = server.episode(OTHER)
    run = server.ledger.episode(episode).run
    del catalogue.manifests[OTHER]
    second = start()
    assert problem(second.step(episode)) == (404, "not-found")
    assert second.ask("GET", f"/episodes/{episode}").json()["simulator"] == OTHER
    assert second.ask("POST", f"/episodes/{episode}/close").status_code == 204
    answer = second.ask("POST", f"/runs/{run}/close", CLOSING)
    assert (answer.status_code, answer.headers[SIMULATOR_HEADER]) == (200, OTHER)
    assert second.ledger.logs.checkpoints(run)


def test_only_responses_about_a_run_or_simulator_have_the_simulator_header(server):
    run = server.run(OTHER)
    episode = server.reset(run).json()["episode"]
    with_header = [
        server.open(OTHER),
        server.ask("GET", f"/runs/{run}"),
        server.reset(run),
        server.step(episode, 7),
        server.ask("GET", f"/episodes/{episode}"),
        server.ask("POST", f"/episodes/{episode}/close"),
        server.ask("GET", f"/runs/{run}/metadata"),
        server.ask("POST", f"/runs/{run}/close", CLOSING),
        server.ask("GET", f"/simulators/{OTHER}/manifest"),
    ]
    assert {answer.headers.get(SIMULATOR_HEADER) for answer in with_header} == {OTHER}
    without_header = [
        server.ask("GET", "/health"),
        server.ask("GET", "/manifest"),
        server.ask("GET", "/metrics"),
        server.ask("GET", "/runs/nobody"),
        server.open(),
    ]
    assert {answer.headers.get(SIMULATOR_HEADER) for answer in without_header} == {None}


def test_an_internal_error_names_the_simulator_of_the_run(server, catalogue):
    episode = server.episode(OTHER)
    catalogue.engines[OTHER]._answer = lambda messages: 1 / 0
    answer = server.step(episode)
    assert problem(answer) == (500, "internal")
    assert answer.headers[SIMULATOR_HEADER] == OTHER


def test_a_manifest_is_served_only_under_its_digest(server):
    answer = server.ask("GET", "/manifest")
    assert problem(answer) == (404, "not-found")
    assert "/simulators/DIGEST/manifest" in answer.json()["error"]["message"]
    for manifest in (FIRST, SECOND):
        answer = server.ask("GET", f"/simulators/{manifest.digest}/manifest")
        assert answer.content == manifest.canonical
    assert problem(server.ask("GET", f"/simulators/{records.digest('no')}/manifest"))[0] == 404
    assert problem(server.ask("GET", "/simulators/latest/manifest")) == (422, "input")


def test_health_covers_all_engines_or_only_those_of_a_run(server, catalogue):
    assert server.ask("GET", "/health").json() == {"simulator": None, "status": "healthy"}
    first_run, second_run = server.run(ONE), server.run(OTHER)
    catalogue.states[OTHER] = {"http://second": "open"}
    assert server.ask("GET", "/health").json() == {"simulator": None, "status": "degraded"}
    health = [server.ask("GET", f"/runs/{run}/health").json() for run in (first_run, second_run)]
    assert health == [
        {"simulator": ONE, "status": "healthy"},
        {"simulator": OTHER, "status": "unhealthy"},
    ]


def test_metrics_are_counted_separately_for_each_simulator(server):
    first, second = server.episode(ONE), server.episode(OTHER)
    for number in (1, 2):
        server.step(first, number)
    server.step(second)
    server.ask("POST", f"/episodes/{first}/close")
    server.step("nobody")
    samples = server.metric_values()
    assert (samples["steps_total", "http", ONE], samples["steps_total", "http", OTHER]) == (2, 1)
    assert (samples["open_episodes", ONE], samples["open_episodes", OTHER]) == (0, 1)
    counts = [samples["episodes_ended_total", "closed", simulator] for simulator in (ONE, OTHER)]
    assert counts == [1, 0]
    assert samples["engine_state", "http://second", OTHER, "closed"] == 1
    assert samples["refusals_total", "not-found"] == 1
    assert {key[1] for key in samples if key[0] == "simulator_info"} == {ONE, OTHER}


def test_open_episodes_of_unconnected_simulators_are_reported(server, start):
    server.episode(OTHER)
    samples = start().metric_values()
    assert samples["open_episodes", OTHER] == 1
    assert ("steps_total", "http", OTHER) not in samples


def test_idle_episodes_expire_and_are_counted_for_their_simulator(server, start):
    episodes = [server.episode(simulator) for simulator in (ONE, OTHER)]
    second = start()
    episode_store = second.app_state.episode_store
    assert second.http.portal.call(episode_store.expire, -1) == 2
    assert {server.ledger.episode(episode).closed for episode in episodes} == {"expired"}
    samples = second.metric_values()
    assert [samples["episodes_ended_total", "expired", digest] for digest in (ONE, OTHER)] == [1, 1]
    assert problem(server.step(episodes[0])) == (409, "conflict")


def test_the_signed_log_of_each_run_names_its_simulator(server, tmp_path):
    runs = [server.run(simulator) for simulator in (ONE, OTHER)]
    for run in runs:
        server.step(server.reset(run).json()["episode"])
    assert server.http.portal.call(server.app_state.runs.seal) == 2
    evidence = Evidence(
        load_trusted(tmp_path / "keys" / SIMULATOR_KEYS), WriteOnce(str(tmp_path / "mirror"))
    )
    for run, simulator in zip(runs, (ONE, OTHER), strict=True):
        report = verify_run(run, server.ledger, evidence)
        assert (report.problems, report.simulator, report.grade) == ((), simulator, "verified")


def test_tenant_limits_apply_across_all_simulators(start, tmp_path):
    access = make.access.Checked(tmp_path, open_runs=2, open_episodes=1)
    server, headers = start(access), {"authorization": make.access.bearer("acme-agent")}
    runs = [server.run(simulator, **headers) for simulator in (ONE, OTHER)]
    assert problem(server.open(OTHER, **headers)) == (429, "limit")
    answers = [server.ask("POST", "/episodes", {"run": run}, **headers) for run in runs]
    assert answers[0].status_code == 200
    assert problem(answers[1]) == (429, "limit")


def test_a_404_for_a_run_of_another_tenant_has_no_simulator_header(start, tmp_path):
    server = start(make.access.Checked(tmp_path))
    owner_headers = {"authorization": make.access.bearer("rival-agent")}
    run = server.run(ONE, **owner_headers)
    other_headers = {"authorization": make.access.bearer("acme-agent")}
    for path in (f"/runs/{run}", f"/runs/{run}/health", f"/runs/{run}/v1/models"):
        answer = server.ask("GET", path, **other_headers)
        assert (answer.status_code, answer.headers.get(SIMULATOR_HEADER)) == (404, None)


def test_a_client_plays_with_the_simulator_of_its_run_and_reads_its_manifest(server):
    async def play(url, name):
        client = SimulatorClient(url)
        await client.open_run(OPENING.model_copy(update={"simulator": name}))
        episode = await client.reset(records.task())
        step = await client.step(episode, "ls")
        manifest = await client.manifest()
        await client.end(episode)
        await client.close()
        return step.observation, manifest

    with listening(server.app) as url:
        assert asyncio.run(play(url, "stable")) == ("first: ls\n[0] ~", FIRST)
        assert asyncio.run(play(url, OTHER)) == ("second: ls\n[0] ~", SECOND)

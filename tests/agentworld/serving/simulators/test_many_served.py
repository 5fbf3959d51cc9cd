"""One service of two simulators: each run is answered by its own, with a shared ledger."""

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
    """A service as its clients reach it."""

    def __init__(self, folder, catalogue, access=ACCESS, kind=Ledger):
        self.app = make.many.app(folder, catalogue, access, kind)
        self.app_state = self.app.state.app_state
        self.ledger = self.app_state.episode_store.ledger
        self.http = TestClient(self.app, "http://localhost", raise_server_exceptions=False)

    def ask(self, method, path, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.request(method, path, json=body, headers=named)

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

    def told(self):
        """The value of each series, by its name and the values of its labels."""
        families = text_string_to_metric_families(self.ask("GET", "/metrics").text)
        return {
            (each.name.removeprefix("agentworld_"), *each.labels.values()): each.value
            for family in families
            for each in family.samples
        }


@pytest.fixture
def catalogue():
    return Catalogue()


@pytest.fixture
def start(tmp_path, catalogue):
    """Starts a replica; all share one ledger."""
    started = []

    def one(access=ACCESS, kind=Ledger):
        replica = Replica(tmp_path, catalogue, access, kind)
        replica.http.__enter__()
        started.append(replica)
        return replica

    yield one
    for replica in started:
        replica.http.__exit__()


@pytest.fixture
def many(start):
    return start()


def problem(answer):
    return answer.status_code, answer.json()["error"]["kind"]


@pytest.mark.parametrize("names", [(ONE, OTHER), ("stable", "canary")])
def test_each_run_is_answered_by_its_named_simulator(many, catalogue, names):
    episodes = [many.episode(name) for name in names]
    for number in (1, 2):
        for episode, simulator in zip(episodes, (ONE, OTHER), strict=True):
            answer = many.step(episode, number, f"echo {number}")
            told = answer.json()
            assert told["observation"] == f"{NAMES[simulator]}: echo {number}\n[0] ~"
            assert told["simulator"] == answer.headers[SIMULATOR_HEADER] == simulator
    for simulator in (ONE, OTHER):
        assert len(catalogue.engines[simulator].requests) == 2
        (system, *_) = catalogue.engines[simulator].requests[0].messages
        assert system["content"].endswith(catalogue.manifests[simulator].control_text)


def test_a_run_without_a_simulator_is_refused(many):
    answer = many.open()
    assert problem(answer) == (422, "input")
    assert "name the run's as `simulator`" in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["gone", records.digest("nobody"), "sha256:../../x"])
def test_an_unknown_simulator_opens_no_run(many, name):
    assert problem(many.open(name)) == (404, "not-found")
    assert many.ledger.runs() == []


def test_a_run_is_refused_while_its_simulator_cannot_be_connected(many, catalogue):
    catalogue.failing = StoreError("the object store is gone")
    assert problem(many.open(ONE)) == (503, "store")
    catalogue.failing = None
    assert many.open(ONE).status_code == 200


def test_moving_an_alias_does_not_change_open_runs(many, catalogue):
    once = {"idempotency_key": "1" * 32}
    run = many.run("stable", **once)
    catalogue.aliases["stable"] = OTHER
    assert many.open("stable", **once).json()["run"]["simulator"] == ONE
    assert many.step(many.reset(run).json()["episode"]).json()["simulator"] == ONE
    assert many.open("stable").json()["run"]["simulator"] == OTHER


def test_an_idempotency_key_used_for_a_run_of_another_simulator_is_refused(many):
    many.run(ONE, idempotency_key="1" * 32)
    assert problem(many.open(OTHER, idempotency_key="1" * 32)) == (409, "conflict")


@pytest.mark.parametrize("way", ["fork", "replay"])
def test_an_episode_of_another_simulator_cannot_be_forked_or_replayed(many, way):
    source = many.episode(ONE)
    many.step(source)
    at = {"episode": source, "step": 1}
    answer = many.reset(many.run(OTHER), **{way: at})
    assert problem(answer) == (409, "conflict")
    assert f"belongs to simulator {ONE}" in answer.json()["error"]["message"]
    assert answer.headers[SIMULATOR_HEADER] == OTHER
    own = many.reset(many.ledger.episode(source).run, **{way: at})
    assert own.json()["simulator"] == ONE


def test_another_replica_connects_the_simulator_and_continues_the_episode(many, start, catalogue):
    episode = many.episode(OTHER)
    many.step(episode, 1, "echo a")
    second = start()
    assert second.step(episode, 2, "echo b").json()["observation"] == "second: echo b\n[0] ~"
    assert list(second.app_state.simulators.connected) == [OTHER]
    assert catalogue.engines[OTHER].requests[-1].messages[-2]["content"] == "second: echo a\n[0] ~"


def noted(name):
    """The ledger's method of this name, which records its calls."""

    def read(self, *asked):
        self.asked.append(name)
        return getattr(Ledger, name)(self, *asked)

    return read


class Read(Ledger):
    """Records reads."""

    def __init__(self, url):
        super().__init__(url)
        self.asked = []

    owner, run_of, run, episode = map(noted, ("owner", "run_of", "run", "episode"))


def test_a_step_of_a_cached_episode_does_not_read_the_ledger(start):
    many = start(kind=Read)
    episodes = [many.episode(each) for each in (ONE, OTHER)]
    assert many.ledger.asked
    many.ledger.asked.clear()
    for number in (1, 2, 3):
        for episode in episodes:
            assert many.step(episode, number).status_code == 200
    assert many.ledger.asked == []


def test_a_simulator_refuses_a_step_of_a_cached_episode_of_another_simulator(many):
    episode, _ = many.episode(OTHER), many.episode(ONE)
    service = many.app_state.simulators.connected[ONE]
    with pytest.raises(Conflict, match=f"belongs to simulator {OTHER} and not to"):
        many.http.portal.call(service.step, episode, Request(1, "ls"))
    assert many.ledger.episode(episode).steps == ()


def test_runs_of_a_deleted_simulator_can_be_read_and_closed_but_not_continued(
    many, start, catalogue
):
    episode = many.episode(OTHER)
    run = many.ledger.episode(episode).run
    del catalogue.manifests[OTHER]
    second = start()
    assert problem(second.step(episode)) == (404, "not-found")
    assert second.ask("GET", f"/episodes/{episode}").json()["simulator"] == OTHER
    assert second.ask("POST", f"/episodes/{episode}/close").status_code == 204
    closed = second.ask("POST", f"/runs/{run}/close", CLOSING)
    assert (closed.status_code, closed.headers[SIMULATOR_HEADER]) == (200, OTHER)
    assert second.ledger.logs.checkpoints(run)


def test_only_responses_about_a_run_or_simulator_have_the_simulator_header(many):
    run = many.run(OTHER)
    episode = many.reset(run).json()["episode"]
    named = [
        many.open(OTHER),
        many.ask("GET", f"/runs/{run}"),
        many.reset(run),
        many.step(episode, 7),
        many.ask("GET", f"/episodes/{episode}"),
        many.ask("POST", f"/episodes/{episode}/close"),
        many.ask("GET", f"/runs/{run}/metadata"),
        many.ask("POST", f"/runs/{run}/close", CLOSING),
        many.ask("GET", f"/simulators/{OTHER}/manifest"),
    ]
    assert {answer.headers.get(SIMULATOR_HEADER) for answer in named} == {OTHER}
    unnamed = [
        many.ask("GET", "/health"),
        many.ask("GET", "/manifest"),
        many.ask("GET", "/metrics"),
        many.ask("GET", "/runs/nobody"),
        many.open(),
    ]
    assert {answer.headers.get(SIMULATOR_HEADER) for answer in unnamed} == {None}


def test_an_internal_error_names_the_simulator_of_the_run(many, catalogue):
    episode = many.episode(OTHER)
    catalogue.engines[OTHER]._answer = lambda messages: 1 / 0
    answer = many.step(episode)
    assert problem(answer) == (500, "internal")
    assert answer.headers[SIMULATOR_HEADER] == OTHER


def test_a_manifest_is_served_only_under_its_digest(many):
    answer = many.ask("GET", "/manifest")
    assert problem(answer) == (404, "not-found")
    assert "/simulators/DIGEST/manifest" in answer.json()["error"]["message"]
    for manifest in (FIRST, SECOND):
        answer = many.ask("GET", f"/simulators/{manifest.digest}/manifest")
        assert answer.content == manifest.canonical
    assert problem(many.ask("GET", f"/simulators/{records.digest('no')}/manifest"))[0] == 404
    assert problem(many.ask("GET", "/simulators/latest/manifest")) == (422, "input")


def test_health_covers_all_engines_or_only_those_of_a_run(many, catalogue):
    assert many.ask("GET", "/health").json() == {"simulator": None, "status": "healthy"}
    one, other = many.run(ONE), many.run(OTHER)
    catalogue.states[OTHER] = {"http://second": "open"}
    assert many.ask("GET", "/health").json() == {"simulator": None, "status": "degraded"}
    health = [many.ask("GET", f"/runs/{run}/health").json() for run in (one, other)]
    assert health == [
        {"simulator": ONE, "status": "healthy"},
        {"simulator": OTHER, "status": "unhealthy"},
    ]


def test_metrics_are_counted_separately_for_each_simulator(many):
    one, other = many.episode(ONE), many.episode(OTHER)
    for number in (1, 2):
        many.step(one, number)
    many.step(other)
    many.ask("POST", f"/episodes/{one}/close")
    many.step("nobody")
    told = many.told()
    assert (told["steps_total", "http", ONE], told["steps_total", "http", OTHER]) == (2, 1)
    assert (told["open_episodes", ONE], told["open_episodes", OTHER]) == (0, 1)
    ended = [told["episodes_ended_total", "closed", each] for each in (ONE, OTHER)]
    assert ended == [1, 0]
    assert told["engine_state", "http://second", OTHER, "closed"] == 1
    assert told["refusals_total", "not-found"] == 1
    assert {key[1] for key in told if key[0] == "simulator_info"} == {ONE, OTHER}


def test_open_episodes_of_unconnected_simulators_are_reported(many, start):
    many.episode(OTHER)
    told = start().told()
    assert told["open_episodes", OTHER] == 1
    assert ("steps_total", "http", OTHER) not in told


def test_idle_episodes_expire_and_are_counted_for_their_simulator(many, start):
    episodes = [many.episode(each) for each in (ONE, OTHER)]
    second = start()
    episode_store = second.app_state.episode_store
    assert second.http.portal.call(episode_store.expire, -1) == 2
    assert {many.ledger.episode(each).closed for each in episodes} == {"expired"}
    told = second.told()
    assert [told["episodes_ended_total", "expired", each] for each in (ONE, OTHER)] == [1, 1]
    assert problem(many.step(episodes[0])) == (409, "conflict")


def test_the_signed_log_of_each_run_names_its_simulator(many, tmp_path):
    runs = [many.run(each) for each in (ONE, OTHER)]
    for run in runs:
        many.step(many.reset(run).json()["episode"])
    assert many.http.portal.call(many.app_state.runs.seal) == 2
    evidence = Evidence(
        load_trusted(tmp_path / "keys" / SIMULATOR_KEYS), WriteOnce(str(tmp_path / "mirror"))
    )
    for run, simulator in zip(runs, (ONE, OTHER), strict=True):
        found = verify_run(run, many.ledger, evidence)
        assert (found.problems, found.simulator, found.grade) == ((), simulator, "verified")


def test_tenant_limits_apply_across_all_simulators(start, tmp_path):
    access = make.access.Checked(tmp_path, open_runs=2, open_episodes=1)
    many, who = start(access), {"authorization": make.access.bearer("acme-agent")}
    runs = [many.run(each, **who) for each in (ONE, OTHER)]
    assert problem(many.open(OTHER, **who)) == (429, "limit")
    answers = [many.ask("POST", "/episodes", {"run": run}, **who) for run in runs]
    assert answers[0].status_code == 200
    assert problem(answers[1]) == (429, "limit")


def test_a_404_for_a_run_of_another_tenant_has_no_simulator_header(start, tmp_path):
    many = start(make.access.Checked(tmp_path))
    theirs = {"authorization": make.access.bearer("rival-agent")}
    run = many.run(ONE, **theirs)
    stranger = {"authorization": make.access.bearer("acme-agent")}
    for path in (f"/runs/{run}", f"/runs/{run}/health", f"/runs/{run}/v1/models"):
        answer = many.ask("GET", path, **stranger)
        assert (answer.status_code, answer.headers.get(SIMULATOR_HEADER)) == (404, None)


def test_a_client_plays_with_the_simulator_of_its_run_and_reads_its_manifest(many):
    async def play(url, name):
        world = SimulatorClient(url)
        await world.open_run(OPENING.model_copy(update={"simulator": name}))
        episode = await world.reset(records.task())
        seen = await world.step(episode, "ls")
        manifest = await world.manifest()
        await world.end(episode)
        await world.close()
        return seen.observation, manifest

    with listening(many.app) as url:
        assert asyncio.run(play(url, "stable")) == ("first: ls\n[0] ~", FIRST)
        assert asyncio.run(play(url, OTHER)) == ("second: ls\n[0] ~", SECOND)

"""The metrics match the service's actions."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from agentworld.errors import EngineError
from make import records
from make.service import OPENING, SIMULATOR, service


@pytest.fixture
def serve(tmp_path):
    """Starts a service whose engine gives this answer; returns a client of it."""

    def start(answer):
        client = TestClient(service(tmp_path, answer).app, "http://localhost").__enter__()
        clients.append(client)
        return client

    clients = []
    yield start
    for client in clients:
        client.__exit__()


@pytest.fixture
def http(serve):
    return serve(lambda _: "[0] ~")


def open_run(http):
    return http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]


def read_samples(http):
    """Every sample by its name and the values of its labels, except the simulator's digest."""
    families = text_string_to_metric_families(http.get("/metrics").text)
    return {
        (
            sample.name.removeprefix("agentworld_"),
            *(value for value in sample.labels.values() if value != SIMULATOR),
        ): sample.value
        for family in families
        for sample in family.samples
    }


def step(http, episode, number, action="ls"):
    return http.post("/steps", json={"episode": episode, "action": action, "step": number})


def test_each_step_is_counted_once_under_its_protocol(http):
    run = open_run(http)
    episode = http.post("/episodes", json={"run": run}).json()["episode"]
    for number in (1, 2, 2):
        step(http, episode, number)
    with http.websocket_connect(f"/runs/{run}/ws") as socket:
        for frame in ({"type": "reset"}, {"type": "step", "data": {"action": "ls"}}):
            socket.send_text(json.dumps(frame))
            socket.receive_text()
    values = read_samples(http)
    assert (values["steps_total", "http"], values["steps_total", "openenv"]) == (2, 1)
    for phase in ("queue", "engine", "ledger", "total"):
        assert values["step_duration_seconds_count", phase] == 3
    assert values["step_duration_seconds_sum", "total"] >= sum(
        values["step_duration_seconds_sum", phase] for phase in ("queue", "engine", "ledger")
    )
    assert values["tokens_total", "output"] == 3 * len("[0] ~")
    assert values["tokens_total", "input"] > 0
    assert values["simulator_info",] == 1


def test_a_replayed_step_is_not_counted_as_an_engine_request(http):
    run = open_run(http)
    episode = http.post("/episodes", json={"run": run}).json()["episode"]
    step(http, episode, 1)
    source = {"episode": episode, "step": 1}
    replay = http.post("/episodes", json={"run": run, "replay": source}).json()["episode"]
    step(http, replay, 1)
    values = read_samples(http)
    assert values["steps_total", "http"] == 2
    assert values["step_duration_seconds_count", "engine"] == 1


@pytest.mark.compute
def test_episodes_are_counted_as_they_begin_and_end(http):
    run = open_run(http)
    task = records.task().model_dump(mode="json")
    limited, closed, _open = (
        http.post("/episodes", json={"run": run, **fields}).json()["episode"]
        for fields in ({"turn_limit": 1}, {}, {"task": task})
    )
    step(http, limited, 1)
    http.post(f"/episodes/{closed}/close")
    values = read_samples(http)
    assert (values["episodes_opened_total",], values["open_episodes",]) == (3, 1)
    assert (values["episodes_ended_total", "limit"], values["episodes_ended_total", "closed"]) == (
        *(1, 1),
    )
    http.post(f"/runs/{run}/close", json={"final_weights": records.digest("final")})
    values = read_samples(http)
    assert (values["episodes_ended_total", "closed"], values["open_episodes",]) == (2, 0)


def test_faults_and_refusals_are_counted_by_kind(serve):
    def fail(_):
        raise EngineError("gone")

    http = serve(fail)
    run = open_run(http)
    episode = http.post("/episodes", json={"run": run}).json()["episode"]
    step(http, episode, 1)
    step(http, "nobody", 1)
    http.get("/nowhere")
    http.get("/manifest", headers={"host": "elsewhere.example"})
    with http.websocket_connect(f"/runs/{run}/ws") as socket:
        socket.send_text("garbage")
        socket.receive_text()
    values = read_samples(http)
    assert values["faults_total", "engine"] == 1
    assert values["refusals_total", "not-found"] == 2
    assert values["refusals_total", "input"] == 1

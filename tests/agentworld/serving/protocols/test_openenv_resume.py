"""A client whose connection is the session, and clients that time out."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from make import records
from make.service import OPENING, SIMULATOR, service
from waiting import wait_for

RESET = {"type": "reset", "data": {}}
STATE = {"type": "state"}


def step(action):
    return {"type": "step", "data": {"action": action}}


def reset(**data):
    return {"type": "reset", "data": data}


@pytest.fixture
def server(tmp_path):
    return service(tmp_path)


@pytest.fixture
def http(server):
    with TestClient(server.app, "http://localhost") as client:
        yield client


@pytest.fixture
def run(http):
    opening = OPENING.model_dump(mode="json")
    return http.post("/runs", json=opening).json()["run"]["id"]


@pytest.fixture
def talk(http, run):
    """Sends frames over a new connection and returns the answers."""

    def converse(*frames):
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            return [ask(socket, frame) for frame in frames]

    return converse


def ask(socket, frame):
    socket.send_text(json.dumps(frame))
    return json.loads(socket.receive_text())


def observation(frame):
    assert frame["type"] == "observation", frame
    return frame["data"]["observation"]


def test_a_reset_with_an_episode_id_resumes_the_episode_on_another_connection(talk):
    start, *_ = talk(RESET, step("echo a"), step("echo b"))
    resumed, third = talk(reset(episode_id=observation(start)["episode"]), step("echo c"))
    assert (observation(resumed)["text"], observation(resumed)["step"]) == ("b\n[0] ~", 2)
    assert (observation(third)["text"], observation(third)["step"]) == ("c\n[0] ~", 3)


def test_an_episode_without_steps_is_resumed_at_its_task(talk):
    task = records.task().model_dump(mode="json")
    (start,) = talk(reset(task=task))
    (resumed,) = talk(reset(episode_id=observation(start)["episode"]))
    assert observation(resumed) == observation(start)


def test_a_repeated_custom_episode_id_begins_one_episode(talk):
    first, _ = talk(reset(episode_id="my-1"), step("echo a"))
    (resumed,) = talk(reset(episode_id="my-1"))
    (other,) = talk(reset(episode_id="my-2"))
    assert (
        observation(resumed)["episode"]
        == observation(first)["episode"]
        != observation(other)["episode"]
    )
    assert observation(resumed)["step"] == 1


def test_a_custom_episode_id_names_different_episodes_in_different_runs(http, talk):
    (first,) = talk(reset(episode_id="my-1"))
    other_run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
    answer = http.post(f"/runs/{other_run}/reset", json={"episode_id": "my-1"}).json()
    assert answer["observation"]["episode"] != observation(first)["episode"]


def test_an_episode_of_another_run_is_not_resumed(http, talk):
    other_run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
    other_episode = http.post(f"/runs/{other_run}/reset").json()["observation"]["episode"]
    (error,) = talk(reset(episode_id=other_episode))
    assert error["data"]["kind"] == "conflict"


def test_a_custom_episode_id_with_other_fields_is_refused(talk):
    talk(reset(episode_id="my-1", turn_limit=3))
    resumed, error = talk(
        reset(episode_id="my-1", turn_limit=3), reset(episode_id="my-1", turn_limit=4)
    )
    assert observation(resumed)["step"] == 0
    assert "was begun with other fields" in error["data"]["message"]


def test_a_repeated_fork_with_a_custom_episode_id_returns_the_same_episode(talk):
    first, _ = talk(reset(initial_state="a.txt: kolu"), step("echo a"))
    fork = reset(episode_id="my-1", fork={"episode": observation(first)["episode"], "step": 1})
    (first_fork,), (second_fork,) = talk(fork), talk(fork)
    assert observation(first_fork)["episode"] == observation(second_fork)["episode"]
    assert observation(second_fork)["step"] == 1


def test_resuming_shows_the_end_of_a_done_episode_and_refuses_a_closed_episode(talk, http):
    first, end = talk(reset(turn_limit=1), step("echo a"))
    (resumed,) = talk(reset(episode_id=observation(first)["episode"]))
    assert resumed["data"] == end["data"]
    assert resumed["data"]["done"]
    (second,) = talk(RESET)
    http.post(f"/episodes/{observation(second)['episode']}/close")
    (error,) = talk(reset(episode_id=observation(second)["episode"]))
    assert "is over (closed)" in error["data"]["message"]


@pytest.mark.parametrize("episode_id", ["", "x" * 256, 7, ["a"]], ids=lambda n: str(n)[:8])
def test_an_invalid_episode_id_is_refused(talk, episode_id):
    (error,) = talk(reset(episode_id=episode_id))
    assert "an episode_id is a text" in error["data"]["message"]


@pytest.fixture
def release():
    """The engine answers when this event is set."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def start_service(tmp_path, release):
    """A function that starts a service with the given settings; its engine waits for `release`."""

    async def answer(_messages):
        await asyncio.to_thread(release.wait)
        return "[0] ~"

    return partial(service, tmp_path, answer)


@pytest.mark.waits
def test_a_step_timeout_is_reported_as_unknown_and_closes_the_connection(start_service, release):
    with TestClient(start_service(answer_seconds=2).app, "http://localhost") as http:
        run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            episode = observation(ask(socket, RESET))["episode"]
            error = ask(socket, step("ls"))["data"]
            assert (error["code"], error["kind"], error["retryable"]) == (
                *("STEP_UNKNOWN", "unknown", True),
            )
            with pytest.raises(WebSocketDisconnect):
                socket.receive_text()
        release.set()
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            resumed = observation(ask(socket, reset(episode_id=episode)))
            next_step = observation(ask(socket, step("ls")))
            assert (resumed["simulator"], next_step["step"]) == (SIMULATOR, resumed["step"] + 1)


@pytest.mark.waits
def test_a_step_sent_before_the_previous_answer_gets_step_unknown(start_service, release):
    server = start_service()
    with TestClient(server.app, "http://localhost") as http:
        run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            ask(socket, RESET)
            socket.send_text(json.dumps(step("ls")))
            wait_for(lambda: server.engine.requests)
            socket.send_text(json.dumps(step("pwd")))
            threading.Timer(0.7, release.set).start()  # longer than what counts as slow
            error = json.loads(socket.receive_text())["data"]
            assert error["code"] == "STEP_UNKNOWN"
            with pytest.raises(WebSocketDisconnect):
                socket.receive_text()


def waiters_of(server, episode):
    """The tasks that wait until the active step of an episode has ended."""
    return server.app.state.app_state.episode_store.find_open(episode).lock._waiters


@pytest.mark.parametrize("interface", ["socket", "http", "state"])
def test_resuming_an_episode_waits_for_its_running_step(start_service, release, interface):
    server = start_service()
    with (
        TestClient(server.app, "http://localhost") as http,
        ThreadPoolExecutor() as executor,
        ExitStack() as cleanup,
    ):
        cleanup.callback(release.set)
        run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
        episode = http.post(f"/runs/{run}/reset").json()["observation"]["episode"]
        body = {"episode_id": episode, "action": {"action": "ls"}}
        step_future = executor.submit(http.post, f"/runs/{run}/step", json=body)
        wait_for(lambda: server.engine.requests)
        resume_future = executor.submit(RESUME_BY[interface], http, run, episode)
        wait_for(lambda: resume_future.done() or waiters_of(server, episode))
        assert not resume_future.done()
        release.set()
        assert resume_future.result() == 1
        assert step_future.result().json()["observation"]["step"] == 1
        answer = http.post(f"/runs/{run}/step", json={**body, "action": {"action": "pwd"}})
        assert answer.json()["observation"]["step"] == 2


def _over_a_socket(http, run, episode):
    with http.websocket_connect(f"/runs/{run}/ws") as socket:
        return observation(ask(socket, reset(episode_id=episode)))["step"]


def _over_http(http, run, episode):
    answer = http.post(f"/runs/{run}/reset", json={"episode_id": episode})
    return answer.json()["observation"]["step"]


def _by_its_state(http, run, episode):
    return http.get(f"/runs/{run}/state", params={"episode_id": episode}).json()["step_count"]


RESUME_BY = {"socket": _over_a_socket, "http": _over_http, "state": _by_its_state}


def test_a_repeated_http_step_of_a_named_episode_is_executed_once(http, run):
    start = http.post(f"/runs/{run}/reset", json={"episode_id": "my-1"}).json()
    episode = start["observation"]["episode"]
    body = {"action": {"action": "echo a"}, "episode_id": episode, "step": 1}
    first, second = (http.post(f"/runs/{run}/step", json=body).json() for _ in range(2))
    assert first == second
    assert (first["observation"]["text"], first["done"]) == ("a\n[0] ~", False)
    del body["step"]
    assert http.post(f"/runs/{run}/step", json=body).json()["observation"]["step"] == 2
    state = http.get(f"/runs/{run}/state", params={"episode_id": episode}).json()
    expected = {"episode_id": episode, "step_count": 2, "run": run, "simulator": SIMULATOR}
    assert state == expected


def test_the_schema_matches_actions_and_observations(http, run):
    schema = http.get(f"/runs/{run}/schema").json()
    assert "action" in schema["action"]["properties"]
    start = http.post(f"/runs/{run}/reset").json()
    assert start["observation"].keys() <= schema["observation"]["properties"].keys()


def test_the_metadata_names_the_simulator(http, run):
    assert http.get(f"/runs/{run}/metadata").json()["version"] == SIMULATOR
    assert http.get(f"/runs/{run}/health").json()["status"] == "healthy"


def test_an_episode_of_another_run_is_not_found_over_http(http, run):
    other_run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
    other_episode = http.post(f"/runs/{other_run}/reset").json()["observation"]["episode"]
    body = {"action": {"action": "ls"}, "episode_id": other_episode}
    assert http.post(f"/runs/{run}/step", json=body).status_code == 404
    assert http.get(f"/runs/{run}/state", params={"episode_id": other_episode}).status_code == 404

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
def served(tmp_path):
    return service(tmp_path)


@pytest.fixture
def http(served):
    with TestClient(served.app, "http://localhost") as client:
        yield client


@pytest.fixture
def run(http):
    opening = OPENING.model_dump(mode="json")
    return http.post("/runs", json=opening).json()["run"]["id"]


@pytest.fixture
def talk(http, run):
    """The frames that answer these, on a new connection."""

    def converse(*frames):
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            return [ask(socket, frame) for frame in frames]

    return converse


def ask(socket, frame):
    socket.send_text(json.dumps(frame))
    return json.loads(socket.receive_text())


def shown(frame):
    assert frame["type"] == "observation", frame
    return frame["data"]["observation"]


def test_a_reset_with_an_episode_id_resumes_the_episode_on_another_connection(talk):
    begun, *_ = talk(RESET, step("echo a"), step("echo b"))
    again, third = talk(reset(episode_id=shown(begun)["episode"]), step("echo c"))
    assert (shown(again)["text"], shown(again)["step"]) == ("b\n[0] ~", 2)
    assert (shown(third)["text"], shown(third)["step"]) == ("c\n[0] ~", 3)


def test_an_episode_without_steps_is_resumed_at_its_task(talk):
    task = records.task().model_dump(mode="json")
    (begun,) = talk(reset(task=task))
    (again,) = talk(reset(episode_id=shown(begun)["episode"]))
    assert shown(again) == shown(begun)


def test_a_repeated_custom_episode_id_begins_one_episode(talk):
    first, _ = talk(reset(episode_id="my-1"), step("echo a"))
    (again,) = talk(reset(episode_id="my-1"))
    (other,) = talk(reset(episode_id="my-2"))
    assert shown(again)["episode"] == shown(first)["episode"] != shown(other)["episode"]
    assert shown(again)["step"] == 1


def test_a_custom_episode_id_names_different_episodes_in_different_runs(http, talk):
    (first,) = talk(reset(episode_id="my-1"))
    other = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
    again = http.post(f"/runs/{other}/reset", json={"episode_id": "my-1"}).json()
    assert again["observation"]["episode"] != shown(first)["episode"]


def test_an_episode_of_another_run_is_not_resumed(http, talk):
    other = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
    theirs = http.post(f"/runs/{other}/reset").json()["observation"]["episode"]
    (refused,) = talk(reset(episode_id=theirs))
    assert refused["data"]["kind"] == "conflict"


def test_a_custom_episode_id_with_other_fields_is_refused(talk):
    talk(reset(episode_id="my-1", turn_limit=3))
    same, refused = talk(
        reset(episode_id="my-1", turn_limit=3), reset(episode_id="my-1", turn_limit=4)
    )
    assert shown(same)["step"] == 0
    assert "was begun with other fields" in refused["data"]["message"]


def test_a_repeated_fork_with_a_custom_episode_id_returns_the_same_episode(talk):
    first, _ = talk(reset(initial_state="a.txt: kolu"), step("echo a"))
    fork = reset(episode_id="my-1", fork={"episode": shown(first)["episode"], "step": 1})
    (begun,), (again,) = talk(fork), talk(fork)
    assert shown(begun)["episode"] == shown(again)["episode"]
    assert shown(again)["step"] == 1


def test_resuming_shows_the_end_of_a_done_episode_and_refuses_a_closed_episode(talk, http):
    first, end = talk(reset(turn_limit=1), step("echo a"))
    (again,) = talk(reset(episode_id=shown(first)["episode"]))
    assert again["data"] == end["data"]
    assert again["data"]["done"]
    (second,) = talk(RESET)
    http.post(f"/episodes/{shown(second)['episode']}/close")
    (refused,) = talk(reset(episode_id=shown(second)["episode"]))
    assert "is over (closed)" in refused["data"]["message"]


@pytest.mark.parametrize("name", ["", "x" * 256, 7, ["a"]], ids=lambda n: str(n)[:8])
def test_an_invalid_episode_id_is_refused(talk, name):
    (refused,) = talk(reset(episode_id=name))
    assert "an episode_id is a text" in refused["data"]["message"]


@pytest.fixture
def free():
    """An engine's answer waits for it."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def held(tmp_path, free):
    """A service, with its own settings, whose engine waits until it is released."""

    async def answer(_messages):
        await asyncio.to_thread(free.wait)
        return "[0] ~"

    return partial(service, tmp_path, answer)


@pytest.mark.waits
def test_a_step_timeout_is_reported_as_unknown_and_closes_the_connection(held, free):
    with TestClient(held(answer_seconds=2).app, "http://localhost") as http:
        run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            episode = shown(ask(socket, RESET))["episode"]
            told = ask(socket, step("ls"))["data"]
            assert (told["code"], told["kind"], told["retryable"]) == (
                *("STEP_UNKNOWN", "unknown", True),
            )
            with pytest.raises(WebSocketDisconnect):
                socket.receive_text()
        free.set()
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            resumed = shown(ask(socket, reset(episode_id=episode)))
            after = shown(ask(socket, step("ls")))
            assert (resumed["simulator"], after["step"]) == (SIMULATOR, resumed["step"] + 1)


@pytest.mark.waits
def test_a_step_sent_before_the_previous_answer_gets_step_unknown(held, free):
    slow = held()
    with TestClient(slow.app, "http://localhost") as http:
        run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
        with http.websocket_connect(f"/runs/{run}/ws") as socket:
            ask(socket, RESET)
            socket.send_text(json.dumps(step("ls")))
            wait_for(lambda: slow.engine.requests)
            socket.send_text(json.dumps(step("pwd")))
            threading.Timer(0.7, free.set).start()  # longer than what counts as slow
            told = json.loads(socket.receive_text())["data"]
            assert told["code"] == "STEP_UNKNOWN"
            with pytest.raises(WebSocketDisconnect):
                socket.receive_text()


def waiting_for(served, episode):
    """A task that waits until the active step of an episode has ended."""
    return served.app.state.app_state.episode_store.find_open(episode).lock._waiters


@pytest.mark.parametrize("way", ["socket", "http", "state"])
def test_resuming_an_episode_waits_for_its_running_step(held, free, way):
    served = held()
    with (
        TestClient(served.app, "http://localhost") as http,
        ThreadPoolExecutor() as others,
        ExitStack() as last,
    ):
        last.callback(free.set)
        run = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
        episode = http.post(f"/runs/{run}/reset").json()["observation"]["episode"]
        taken = {"episode_id": episode, "action": {"action": "ls"}}
        first = others.submit(http.post, f"/runs/{run}/step", json=taken)
        wait_for(lambda: served.engine.requests)
        resumed = others.submit(RESUMING[way], http, run, episode)
        wait_for(lambda: resumed.done() or waiting_for(served, episode))
        assert not resumed.done()
        free.set()
        assert resumed.result() == 1
        assert first.result().json()["observation"]["step"] == 1
        after = http.post(f"/runs/{run}/step", json={**taken, "action": {"action": "pwd"}})
        assert after.json()["observation"]["step"] == 2


def _over_a_socket(http, run, episode):
    with http.websocket_connect(f"/runs/{run}/ws") as socket:
        return shown(ask(socket, reset(episode_id=episode)))["step"]


def _over_http(http, run, episode):
    answer = http.post(f"/runs/{run}/reset", json={"episode_id": episode})
    return answer.json()["observation"]["step"]


def _by_its_state(http, run, episode):
    return http.get(f"/runs/{run}/state", params={"episode_id": episode}).json()["step_count"]


RESUMING = {"socket": _over_a_socket, "http": _over_http, "state": _by_its_state}


def test_a_repeated_http_step_of_a_named_episode_is_executed_once(http, run):
    begun = http.post(f"/runs/{run}/reset", json={"episode_id": "my-1"}).json()
    episode = begun["observation"]["episode"]
    asked = {"action": {"action": "echo a"}, "episode_id": episode, "step": 1}
    first, again = (http.post(f"/runs/{run}/step", json=asked).json() for _ in range(2))
    assert first == again
    assert (first["observation"]["text"], first["done"]) == ("a\n[0] ~", False)
    del asked["step"]
    assert http.post(f"/runs/{run}/step", json=asked).json()["observation"]["step"] == 2
    state = http.get(f"/runs/{run}/state", params={"episode_id": episode}).json()
    told = {"episode_id": episode, "step_count": 2, "run": run, "simulator": SIMULATOR}
    assert state == told


def test_the_schema_matches_actions_and_observations(http, run):
    told = http.get(f"/runs/{run}/schema").json()
    assert "action" in told["action"]["properties"]
    begun = http.post(f"/runs/{run}/reset").json()
    assert begun["observation"].keys() <= told["observation"]["properties"].keys()


def test_the_metadata_names_the_simulator(http, run):
    assert http.get(f"/runs/{run}/metadata").json()["version"] == SIMULATOR
    assert http.get(f"/runs/{run}/health").json()["status"] == "healthy"


def test_an_episode_of_another_run_is_not_found_over_http(http, run):
    other = http.post("/runs", json=OPENING.model_dump(mode="json")).json()["run"]["id"]
    theirs = http.post(f"/runs/{other}/reset").json()["observation"]["episode"]
    asked = {"action": {"action": "ls"}, "episode_id": theirs}
    assert http.post(f"/runs/{run}/step", json=asked).status_code == 404
    assert http.get(f"/runs/{run}/state", params={"episode_id": theirs}).status_code == 404

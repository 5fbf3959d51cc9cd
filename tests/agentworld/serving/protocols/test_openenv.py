import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from agentworld.errors import EngineError
from make import records

SIMULATOR = records.manifest().digest


@pytest.fixture
def converse(serve):
    """A function that sends frames over one connection and returns the answers."""

    def talk(*frames, answer=None, run=None, **manifest):
        service = serve(answer, **manifest) if answer else serve(**manifest)
        path = f"/runs/{run or service.run()}/ws"
        with TestClient(service.transport.app).websocket_connect(path) as socket:
            answers = []
            for frame in frames:
                socket.send_text(frame if isinstance(frame, str) else json.dumps(frame))
                answers.append(json.loads(socket.receive_text()))
        return answers

    return talk


def step(action):
    return {"type": "step", "data": {"action": action}}


RESET = {"type": "reset", "data": {}}


def test_a_connection_plays_an_episode(converse):
    start, first, second, state = converse(RESET, step("echo a"), step("echo b"), {"type": "state"})
    assert start["data"]["observation"]["simulator"] == SIMULATOR
    assert [frame["type"] for frame in (start, first, second, state)] == [
        *["observation"] * 3,
        "state",
    ]
    assert second["data"]["observation"]["text"] == "b\n[0] ~"
    assert (second["data"]["reward"], second["data"]["done"]) == (None, False)
    assert state["data"]["step_count"] == 2
    assert state["data"]["episode_id"] == start["data"]["observation"]["episode"]


@pytest.mark.parametrize("text", ["é 😀 \x00", "\ud800", "é \udfff"])
def test_any_text_is_returned_unchanged_including_lone_surrogates(converse, text):
    _, answer = converse(RESET, step(f"echo {text}"))
    assert answer["data"]["observation"]["text"] == f"{text}\n[0] ~"


def test_a_reset_returns_the_task_instruction_and_the_last_step_the_reward(converse):
    reset = {"type": "reset", "data": {"task": records.task().model_dump(mode="json")}}
    start, end, error = converse(reset, step("echo besa"), step("ls"))
    assert start["data"]["observation"]["text"] == "report rimo.txt"
    assert (end["data"]["reward"], end["data"]["done"]) == (1.0, True)
    assert error["type"] == "error"


def test_a_second_reset_begins_another_episode(converse):
    first, _, second, answer = converse(RESET, step("echo a"), RESET, step("echo b"))
    names = {frame["data"]["observation"]["episode"] for frame in (first, second)}
    assert len(names) == 2
    assert answer["data"]["observation"]["step"] == 1


def test_an_engine_failure_is_an_error_frame_and_the_step_can_be_retried(converse):
    answers = iter([EngineError("gone", retry_after_seconds=2), "[0] ~"])
    _, error, answer = converse(
        RESET, step("ls"), step("ls"), answer=lambda messages: next(answers)
    )
    assert error["type"] == "error"
    data = error["data"]
    assert (data["kind"], data["retryable"], data["retry_after_seconds"]) == ("engine", True, 2)
    assert answer["data"]["observation"]["step"] == 1


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ("nothing", "is not JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="nested too deep"),
        ("[]", "is an object"),
        ({"type": "jump"}, "no frame of type 'jump'"),
        ({"type": "reset", "data": {"turn_limit": 0}}, "turn_limit"),
        ({"type": "reset", "data": {"seed": 7}}, "cannot be used"),
        (step("ls"), "reset first"),
        ({"type": "step", "data": {"action": 1}}, "reset first"),
    ],
    ids=str,
)
def test_an_invalid_frame_gets_an_error_frame_with_the_problem(converse, frame, problem):
    (answer,) = converse(frame)
    assert answer["type"] == "error"
    assert problem in answer["data"]["message"]


def test_an_unknown_run_is_an_error_frame(converse):
    (answer,) = converse(RESET, run="nobody")
    assert answer["data"]["kind"] == "not-found"


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)


@pytest.mark.waits
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.text() | st.builds(json.dumps, st.dictionaries(st.text(), JSON)), max_size=3))
def test_any_invalid_frame_gets_an_error_frame_and_keeps_the_connection_open(converse, frames):
    *answers, last = converse(*frames, RESET)
    assert {answer["type"] for answer in answers} <= {"error"}
    assert last["type"] == "observation"

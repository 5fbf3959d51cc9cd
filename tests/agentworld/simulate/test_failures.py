"""Requests that no careful client sends are refused in one sentence, and are no mistake of ours."""

import pytest

import make

OPENING = {"agent": "terminal-agent", "starting_weights": make.digest("starting")}
HALF = "\ud800"
"""Of a surrogate pair: JSON can say it, and it is no Unicode."""


def problem(response):
    return response.status_code, response.json()["error"]["kind"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/steps", {"episode": HALF, "action": "ls", "step": 1}),
        ("/runs", {**OPENING, "agent": HALF}),
        ("/runs", {**OPENING, "simulator": HALF}),
        ("/episodes", {"run": HALF}),
        ("/episodes", {"run": "r", "fork": {"episode": HALF, "step": 0}}),
        ("/runs/r/close", {"final_weights": make.digest("final"), "signature": HALF}),
        ("/runs/r/step", {"episode_id": HALF, "action": {"action": "ls"}}),
    ],
)
def test_a_name_that_is_no_unicode_is_refused(serve, path, body):
    status, kind = problem(serve().http("POST", path, body))
    assert (status, kind) in [(422, "input"), (404, "not-found")]


@pytest.mark.parametrize(
    ("path", "status"), [("/episodes", 400), ("/steps", 422), ("/runs/r/step", 400)]
)
def test_a_request_that_is_nested_too_deep_is_refused(serve, path, status):
    assert problem(serve().send("POST", path, b"[" * 100_000)) == (status, "input")


def test_a_method_that_a_route_does_not_take_is_told_which_it_does(serve):
    answer = serve().http("DELETE", "/steps")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")

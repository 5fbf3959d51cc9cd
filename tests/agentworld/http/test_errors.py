"""Requests that no careful client sends are refused in one sentence, and are no server errors."""

import sqlite3
from contextlib import closing

import pytest

from make import records

OPENING = {"agent": "shell-agent", "starting_weights": records.digest("starting")}
LONE_SURROGATE = "\ud800"
"""Half of a surrogate pair: valid in JSON, but not Unicode."""


def problem(response):
    return response.status_code, response.json()["error"]["kind"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/steps", {"episode": LONE_SURROGATE, "action": "ls", "step": 1}),
        ("/runs", {**OPENING, "agent": LONE_SURROGATE}),
        ("/runs", {**OPENING, "simulator": LONE_SURROGATE}),
        ("/episodes", {"run": LONE_SURROGATE}),
        ("/episodes", {"run": "r", "fork": {"episode": LONE_SURROGATE, "step": 0}}),
        ("/runs/r/close", {"final_weights": records.digest("final"), "signature": LONE_SURROGATE}),
        ("/runs/r/step", {"episode_id": LONE_SURROGATE, "action": {"action": "ls"}}),
    ],
)
def test_a_name_with_a_lone_surrogate_is_refused(serve, path, body):
    status, kind = problem(serve().http("POST", path, body))
    assert (status, kind) in [(422, "input"), (404, "not-found")]


@pytest.mark.parametrize(
    ("path", "status"), [("/episodes", 400), ("/steps", 422), ("/runs/r/step", 400)]
)
def test_a_request_that_is_nested_too_deep_is_refused(serve, path, status):
    assert problem(serve().send("POST", path, b"[" * 100_000)) == (status, "input")


def test_a_step_whose_row_is_not_written_fails_and_can_be_repeated(serve, tmp_path):
    service = serve()
    episode = service.reset()
    drop = "CREATE TRIGGER drops BEFORE INSERT ON steps BEGIN SELECT RAISE(IGNORE); END"
    for statement, status in ((drop, 503), ("DROP TRIGGER drops", 200)):
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
            database.execute(statement)
        assert service.step(episode, "ls", 1).status_code == status
    assert [step.action for step in service.ledger.episode(episode).steps] == ["ls"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/steps", "OPTIONS, POST"),
        ("/aliases/stable", "DELETE, GET, OPTIONS, PUT"),
        ("/runs/r/mcp", "OPTIONS, POST"),
        ("/episodes/e/mcp", "OPTIONS, POST"),
        ("/runs/r/v1/models", "GET, OPTIONS"),
    ],
)
def test_a_path_lists_its_allowed_methods(serve, path, methods):
    service = serve()
    options = service.http("OPTIONS", path)
    assert (options.status_code, options.headers["allow"], options.content) == (204, methods, b"")
    for method in ("PATCH", "TRACE"):
        response = service.http(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, methods)
        assert f"does not take {method}; send {methods}" in response.json()["error"]["message"]


@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
def test_an_unknown_path_is_not_found_and_lists_no_methods(serve, method):
    response = serve().http(method, "/nowhere")
    assert (response.status_code, "allow" in response.headers) == (404, False)
    assert "nothing is at '/nowhere'" in response.json()["error"]["message"]

"""A garbled row, file or name stops no audit, and hides no other problem."""

import os
import sqlite3
from contextlib import closing

import pytest

import make.service
from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.audit.questions.agents import audit_agents
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.records.episode import new_name
from agentworld.records.statements.alias import AliasMove
from agentworld.statements.alias_moves import AliasMoveSigner
from make.story import Story, story
from make.template import copied

pytestmark = pytest.mark.compute

DEEP = "[" * 200_000
LARGEST = 2**63 - 1
INVALID_TEXT = "CAST(x'61ff62' AS TEXT)"


@pytest.fixture
def history(tmp_path) -> Story:
    """A story with an alias, and a world model whose files were changed."""
    return copied(build_history, tmp_path)


def build_history(store) -> Story:
    history = story(store)
    statement_signer = make.service.log_signer(history.store, history.simulator).statement_signer
    ledger = history.sources.ledger
    move = AliasMove(kind="simulator", simulator=history.simulator, by="ada")
    AliasMoveSigner(ledger, statement_signer).move("stable", move, None, new_name(), dry_run=False)
    assert verify_everything(history.sources).problems == ()
    (history.store / "world/model.safetensors").write_text("other")
    return history


def change(history: Story, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        assert database.execute(statement, values).rowcount > 0


def find_problems(history: Story) -> list[str]:
    """The problems, without that of the world model's files."""
    verification = verify_everything(history.sources)
    assert verification.model_dump_json()
    other_problems = [
        problem
        for problem in verification.problems
        if not problem.startswith("world@1: mirror differs in files")
    ]
    assert len(other_problems) < len(verification.problems)
    return other_problems


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        ("UPDATE aliases SET gate = ?", [DEEP], "the history of alias 'stable' is garbled: "),
        ("UPDATE episodes SET num_copied = ?", [LARGEST], "exceeds safe integer domain"),
        ("UPDATE runs SET log_length = -1", [], "log_length: Input should be greater than"),
        ("UPDATE runs SET opening = ?", [DEEP], "is garbled: the whole: Invalid JSON"),
        (f"UPDATE aliases SET at = {INVALID_TEXT}", [], "alias 'stable' is garbled: at: "),
        (f"UPDATE runs SET tenant = {INVALID_TEXT}", [], "has tenant 'local'"),
        (f"UPDATE runs SET id = {INVALID_TEXT}", [], "'a\\udcffb'"),
        ("UPDATE log SET body = ?", [DEEP.encode()], "entry 1 of the log is missing, garbled or"),
        ("UPDATE log SET body = ?", [LARGEST], "entry 1 of the log is missing, garbled or"),
        ("UPDATE log SET sequence = 'x' || sequence", [], "entry 1 of the log is missing, garbled"),
        ("UPDATE steps SET entry = 'x' WHERE number = 1", [], "steps under entry 0 are not those"),
        ("UPDATE steps SET head = x'ff' WHERE number = 1", [], "do not follow from each other"),
        ("UPDATE checkpoints SET length = 'x'", [], "a checkpoint's length is 'x', which is no"),
        ("UPDATE checkpoints SET envelope = 7", [], "this is not an envelope of ours"),
        ("UPDATE attestations SET envelope = ?", [DEEP], "this is not an envelope of ours"),
        (
            f"UPDATE attestations SET name = {INVALID_TEXT} || sequence",
            [],
            "its row differs from what was signed",
        ),
        ("UPDATE signing_keys SET public = x'ff'", [], "is not trusted"),
        ("UPDATE attestations SET kind = x'ff' WHERE kind = 'alias'", [], "is of an unknown kind"),
    ],
)
def test_a_garbled_row_is_reported_beside_other_problems(history, statement, values, words):
    if "signing_keys" in statement:
        history.sources.ledger.signing_keys.use("k", "a key")
    change(history, statement, *values)
    problems = find_problems(history)
    assert [problem for problem in problems if words in problem], problems
    assert not [
        problem for problem in problems if "invalid literal" in problem or "Error)" in problem
    ]
    assert len(problems) == len(set(problems))
    assert audit_agents(history.sources).model_dump_json()
    assert verify_agent(history.agent, history.sources).model_dump_json()


def test_a_simulator_audit_reports_a_garbled_run_and_still_lists_agents(history):
    other = history.sources.ledger.open_run(history.run.opening, history.simulator).id
    change(history, "UPDATE runs SET log_length = -1 WHERE id = ?", other)
    audit = audit_simulator(history.simulator, history.sources)
    assert [origin.agent for origin in audit.agents] == ["hero@1"]
    (problem,) = audit.problems
    assert f"run {other} is garbled" in problem


@pytest.mark.parametrize(
    ("name", "shown_name"),
    [
        (b"\xff\xfe", "'\\udcff\\udcfe'"),
        (b"of nobody", "'of nobody'"),
        ("имя".encode(), "'имя'"),
        (b"note.txt", "note.txt"),
        (b"unknown-folder/a.dsse.json", "unknown-folder/a.dsse.json"),
        (b"episode-erasures/nobody/a.dsse.json", "episode-erasures/nobody/a.dsse.json"),
        (b"nobody/note.txt", "nobody/note.txt"),
    ],
)
def test_an_unexpected_file_in_the_mirror_is_reported_and_stops_no_audit(history, name, shown_name):
    path = os.fsencode(history.store / "mirror") + b"/" + name
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"{}")
    (problem,) = find_problems(history)
    assert problem.startswith(f"the evidence mirror has {shown_name}, which ")


def test_an_unexpected_mirror_file_is_not_reported_as_a_deleted_runs_checkpoint(history):
    stray = history.store / "mirror/abc/note.txt"
    stray.parent.mkdir()
    stray.write_text("")
    assert not any("is gone from the ledger" in problem for problem in find_problems(history))


def test_a_failing_search_for_orphan_rows_is_reported_as_one_problem(history, monkeypatch):
    def fail(_):
        raise ValueError

    monkeypatch.setattr("agentworld.ledger.ledger.orphan_rows", fail)
    (problem,) = find_problems(history)
    assert problem.startswith("the ledger is garbled: ")

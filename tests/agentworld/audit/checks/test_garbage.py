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
NO_TEXT = "CAST(x'61ff62' AS TEXT)"


@pytest.fixture
def told(tmp_path) -> Story:
    """With an alias, and a world model whose files were changed."""
    return copied(named, tmp_path)


def named(store) -> Story:
    told = story(store)
    statement_signer = make.service.log_signer(told.store, told.simulator).statement_signer
    ledger = told.sources.ledger
    move = AliasMove(kind="simulator", simulator=told.simulator, by="ada")
    AliasMoveSigner(ledger, statement_signer).move("stable", move, None, new_name(), dry_run=False)
    assert verify_everything(told.sources).problems == ()
    (told.store / "world/model.safetensors").write_text("other")
    return told


def change(told: Story, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        assert database.execute(statement, values).rowcount > 0


def problems(told: Story) -> list[str]:
    """Beside the one that is always there."""
    found = verify_everything(told.sources)
    assert found.model_dump_json()
    others = [
        each for each in found.problems if not each.startswith("world@1: mirror differs in files")
    ]
    assert len(others) < len(found.problems)
    return others


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        ("UPDATE aliases SET gate = ?", [DEEP], "the history of alias 'stable' is garbled: "),
        ("UPDATE episodes SET num_copied = ?", [LARGEST], "exceeds safe integer domain"),
        ("UPDATE runs SET log_length = -1", [], "log_length: Input should be greater than"),
        ("UPDATE runs SET opening = ?", [DEEP], "is garbled: the whole: Invalid JSON"),
        (f"UPDATE aliases SET at = {NO_TEXT}", [], "alias 'stable' is garbled: at: "),
        (f"UPDATE runs SET tenant = {NO_TEXT}", [], "has tenant 'local'"),
        (f"UPDATE runs SET id = {NO_TEXT}", [], "'a\\udcffb'"),
        ("UPDATE log SET body = ?", [DEEP.encode()], "entry 1 of the log is missing, garbled or"),
        ("UPDATE log SET body = ?", [LARGEST], "entry 1 of the log is missing, garbled or"),
        ("UPDATE log SET sequence = 'x' || sequence", [], "entry 1 of the log is missing, garbled"),
        ("UPDATE steps SET entry = 'x' WHERE number = 1", [], "steps under entry 0 are not those"),
        ("UPDATE steps SET head = x'ff' WHERE number = 1", [], "do not follow from each other"),
        ("UPDATE checkpoints SET length = 'x'", [], "a checkpoint's length is 'x', which is no"),
        ("UPDATE checkpoints SET envelope = 7", [], "this is not an envelope of ours"),
        ("UPDATE attestations SET envelope = ?", [DEEP], "this is not an envelope of ours"),
        (
            f"UPDATE attestations SET name = {NO_TEXT} || sequence",
            [],
            "its row differs from what was signed",
        ),
        ("UPDATE signing_keys SET public = x'ff'", [], "is not trusted"),
        ("UPDATE attestations SET kind = x'ff' WHERE kind = 'alias'", [], "is of an unknown kind"),
    ],
)
def test_a_garbled_row_is_reported_beside_other_problems(told, statement, values, words):
    if "signing_keys" in statement:
        told.sources.ledger.signing_keys.use("k", "a key")
    change(told, statement, *values)
    found = problems(told)
    assert [problem for problem in found if words in problem], found
    assert not [each for each in found if "invalid literal" in each or "Error)" in each]
    assert len(found) == len(set(found))
    assert audit_agents(told.sources).model_dump_json()
    assert verify_agent(told.agent, told.sources).model_dump_json()


def test_a_simulator_audit_reports_a_garbled_run_and_still_lists_agents(told):
    other = told.sources.ledger.open_run(told.run.opening, told.simulator).id
    change(told, "UPDATE runs SET log_length = -1 WHERE id = ?", other)
    found = audit_simulator(told.simulator, told.sources)
    assert [each.agent for each in found.agents] == ["hero@1"]
    (problem,) = found.problems
    assert f"run {other} is garbled" in problem


@pytest.mark.parametrize(
    ("name", "shown"),
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
def test_an_unexpected_file_in_the_mirror_is_reported_and_stops_no_audit(told, name, shown):
    place = os.fsencode(told.store / "mirror") + b"/" + name
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(b"{}")
    (problem,) = problems(told)
    assert problem.startswith(f"the evidence mirror has {shown}, which ")


def test_an_unexpected_mirror_file_is_not_reported_as_a_deleted_runs_checkpoint(told):
    stray = told.store / "mirror/abc/note.txt"
    stray.parent.mkdir()
    stray.write_text("")
    assert not any("is gone from the ledger" in problem for problem in problems(told))


def test_a_failing_search_for_orphan_rows_is_reported_as_one_problem(told, monkeypatch):
    def fail(_):
        raise ValueError

    monkeypatch.setattr("agentworld.ledger.ledger.orphan_rows", fail)
    (problem,) = problems(told)
    assert problem.startswith("the ledger is garbled: ")

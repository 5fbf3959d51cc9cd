"""The problems of a whole ledger after tampering."""

from functools import partial

import pytest

from agentworld.audit.checks.edges import audit_edge, edges_of
from agentworld.audit.checks.ledger import verify_ledger
from agentworld.lineage.base import Agent
from agentworld.records.base import now
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.records.statements.restore import Restore
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.envelope import attest
from agentworld.signing.keys import ensure_signer, load_trusted, public_pem
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from make import records

SIMULATOR = records.digest("simulator")
STARTED, FINAL = records.digest("starting"), records.digest("final")
OPENING = RunOpening(agent="a", starting_weights=STARTED)
INSERT = "INSERT INTO attestations (name, kind, subject, simulator, run, at, envelope)"
COLUMNS = "subject, simulator, run, at, envelope FROM attestations"


def find_problems(scene):
    return list(verify_ledger(scene.ledger, scene.evidence).problems)


def log_signer(scene):
    keys = scene.folder / "keys"
    trusted = partial(load_trusted, keys)
    signer = partial(ensure_signer, keys)
    return LogCheckpointSigner(scene.ledger, SIMULATOR, signer, scene.mirror, trusted=trusted)


def register(scene, *data) -> SignedEdge:
    """Closes the run, unless it is closed, and signs the edge of its agent."""
    run = scene.ledger.close_run(scene.run, RunClosing(final_weights=FINAL))
    scene.seal()
    fields = {"agent": "a", "artifact": FINAL, "starting_weights": STARTED, "simulator": SIMULATOR}
    return log_signer(scene).statement_signer.edge(
        run, Claim(**fields, data=tuple(map(records.digest, data)))
    )


def test_an_unchanged_ledger_has_no_problems(scene):
    register(scene, "data")
    register(scene, "data", "more data")
    assert find_problems(scene) == []


def test_records_that_are_not_signed_yet_are_no_problem(scene):
    scene.ledger.open_run(OPENING, SIMULATOR)
    scene.play("third", "d")
    assert find_problems(scene) == []


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE steps SET reward = 1.0 WHERE episode = 2", "run {run}: the steps of episode"),
        ("UPDATE steps SET place = 1 WHERE episode = 2", "run {run}: the 1 steps under entry"),
        ("UPDATE runs SET signature = '{{}}'", "the ledger's record of run {run} is"),
        ("UPDATE runs SET final_weights = ''", "the ledger's record of run {run} is"),
        ("UPDATE runs SET tenant = CAST(x'ff' AS TEXT)", "run {run}: the run was not opened as"),
        ("UPDATE runs SET id = 'other'", "run {run} is missing from the ledger"),
        ("DELETE FROM log", "run {run}: the run was not opened as the log says"),
        ("UPDATE steps SET episode = 9 WHERE episode = 2", "1 rows of steps refer to 9, which"),
        ("DELETE FROM runs", "rows of log refer to '{run}', which runs lacks"),
    ],
)
def test_a_changed_or_deleted_ledger_row_is_reported_with_its_run_or_table(scene, statement, words):
    scene.change(statement.format())
    assert any(words.format(run=scene.run) in problem for problem in find_problems(scene)), (
        find_problems(scene)
    )


def test_a_run_that_has_no_log_does_not_verify(scene):
    run = scene.ledger.open_run(OPENING, SIMULATOR).id
    scene.change(
        f"DELETE FROM log WHERE run = '{run}'", f"UPDATE runs SET log_length = 0 WHERE id = '{run}'"
    )
    assert find_problems(scene) == [f"run {run}: the run was not opened as the log says"]


def test_problems_of_other_runs_are_reported_beside_an_unreadable_run(scene):
    other = scene.ledger.open_run(OPENING, SIMULATOR).id
    scene.change(f"UPDATE runs SET opening = '' WHERE id = '{other}'", "UPDATE steps SET done = 1")
    text = "\n".join(find_problems(scene))
    assert f"the ledger's record of run {other} is garbled" in text
    assert f"run {scene.run}: " in text


def test_problems_of_other_runs_are_reported_beside_an_unreadable_restore(scene):
    scene.change(
        "INSERT INTO attestations (name, kind, subject, simulator, run, at, envelope)"
        " VALUES ('x', 'restore', '', '', 'nobody', '', CAST(x'ff' AS TEXT))",
        "UPDATE steps SET done = 1",
    )
    problems = [
        problem for problem in find_problems(scene) if problem.startswith(f"run {scene.run}: ")
    ]
    assert problems
    assert not any("is garbled" in problem for problem in problems)


def test_a_text_inserted_into_an_erased_episode_is_reported(scene):
    scene.ledger.erase_texts("first")
    assert find_problems(scene) == []
    scene.change("UPDATE steps SET action = x'00' WHERE episode = 1")
    (problem,) = find_problems(scene)
    assert "episode first is garbled" in problem


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM attestations", "is gone from the ledger"),
        ("UPDATE attestations SET name = 'agent-edges/x'", "its row differs from what was signed"),
        ("UPDATE attestations SET run = 'x'", "its row differs from what was signed"),
        ("UPDATE attestations SET envelope = x'00'", "differs in the evidence mirror"),
        ("UPDATE attestations SET kind = 'x'", "is of an unknown kind, 'x'"),
        (f"{INSERT} SELECT name || 'x', kind, {COLUMNS}", "its row differs from what was signed"),
        (
            "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT)",
            "this is not an envelope of ours",
        ),
    ],
)
def test_a_changed_or_deleted_edge_is_reported(scene, change, words):
    register(scene)
    scene.change(f"{change} WHERE kind = 'edge'")
    assert any(words in problem for problem in find_problems(scene)), find_problems(scene)


def test_a_mirror_copy_under_a_wrong_name_is_reported_by_that_name(scene):
    name = f"agent-edges/{scene.run}/other.dsse.json"
    scene.mirror.put(name, register(scene).envelope.encode())
    (problem,) = find_problems(scene)
    assert problem.startswith(
        f"the copy {name} does not verify: it is the copy of another statement"
    )


@pytest.mark.parametrize("run", ["", "nobody"])
def test_a_restore_for_no_existing_run_signed_with_an_untrusted_key_is_reported(
    scene, run, tmp_path
):
    restore = Restore(run=run, lost=("x",), reason="a disk", by="eve", at=now())
    attestation = attest(restore, ensure_signer(tmp_path / "stranger"))
    scene.ledger.attestations.add(attestation)
    words = f"the restore {attestation.name} does not verify"
    assert any(problem.startswith(words) for problem in find_problems(scene)), find_problems(scene)


def test_a_withdrawal_row_moved_to_another_version_is_reported_with_both_versions(scene):
    fields = {"artifact": FINAL, "registered": FINAL, "reason": "no good", "by": "ada", "at": now()}
    log_signer(scene).statement_signer.declare(Withdrawal(version="a@1", **fields))
    scene.change("UPDATE attestations SET subject = 'b@2' WHERE kind = 'withdrawal'")
    (problem,) = find_problems(scene)
    assert " of b@2 does not verify: its row differs from what was signed" in problem
    assert problem.endswith(" of a@1)")


def test_the_newest_edge_counts_regardless_of_the_order_of_rows(scene):
    register(scene, "data")
    newer_edge = register(scene, "data", "more data")
    scene.change("UPDATE attestations SET sequence = 9 WHERE sequence = 2")
    checkpoint = records.checkpoint("agent", artifact=FINAL, parents=[STARTED], simulator=SIMULATOR)
    agent = Agent(checkpoint=checkpoint, run=scene.run, edge=newer_edge)
    audit = audit_edge("a", agent, scene.ledger.attestations, scene.evidence)
    assert (audit.edge, audit.grade) == (newer_edge.edge, "observed")
    assert edges_of(SIMULATOR, scene.ledger.attestations, scene.evidence) == [newer_edge.edge]


def test_an_untrusted_signing_key_in_the_ledger_is_reported(scene):
    own_key = ensure_signer(scene.folder / "keys").public_key
    scene.ledger.signing_keys.use(own_key.keyid, public_pem(own_key).decode())
    assert find_problems(scene) == []
    other_key = ensure_signer(scene.folder / "others").public_key
    scene.ledger.signing_keys.use(other_key.keyid, public_pem(other_key).decode())
    (problem,) = find_problems(scene)
    assert other_key.keyid in problem

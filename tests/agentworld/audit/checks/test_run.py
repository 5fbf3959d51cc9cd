"""The findings of a verification after tampering with the database."""

import gc
import shutil
import sqlite3
from contextlib import nullcontext

import pytest

from agentworld.audit.checks.run import verify_run
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger.writes import EpisodeClosed
from agentworld.records.run import RunClosing
from agentworld.records.statements.edge import Traffic
from agentworld.signing.checkpoint import RunCheckpoint, checkpoint_name, sign_checkpoint
from agentworld.signing.keys import ensure_signer, rotate
from agentworld.signing.merkle import merkle_root
from agentworld.signing.weights import RunWeights, sign_weights
from make import records

FINAL = records.digest("final")
SIMULATOR = records.digest("simulator")
ZEROS = "sha256:" + "0" * 64
OTHER_OPENING = "CAST(json_set(CAST(opening AS TEXT), '$.turn_limit', 33) AS BLOB)"


def test_an_unchanged_run_record_is_verified_and_signed_up_to_its_last_entry(scene):
    scene.ledger.close_run(scene.run, RunClosing(final_weights=FINAL))
    scene.seal()
    finding = scene.verify()
    assert (finding.grade, finding.problems) == ("verified", ())
    assert finding.signed_length == finding.log_length
    assert (finding.num_episodes, finding.num_steps, finding.weights) == (2, 3, "claimed")


def test_verification_ignores_the_episode_and_step_counts_of_the_runs_row(scene):
    scene.change("UPDATE runs SET num_episodes = 7, num_steps = 8")
    finding = scene.verify()
    assert (finding.grade, finding.num_episodes, finding.num_steps) == ("verified", 2, 3)


def test_a_garbled_episode_among_many_is_named(scene):
    for number in range(5):
        scene.play(f"more {number}", "d")
    scene.seal()
    scene.change("UPDATE episodes SET opening = x'00' WHERE id = 'more 3'")
    (problem,) = scene.verify().problems
    assert problem.startswith("episode more 3 is garbled")


def test_a_log_that_did_not_grow_is_not_signed_again(scene):
    assert scene.seal() == 0
    scene.play("third", "d")
    assert scene.seal() == 1


def test_a_run_with_unsigned_entries_is_graded_unsigned(scene):
    scene.play("third", "d")
    finding = scene.verify()
    assert (finding.grade, finding.problems) == ("unsigned", ())
    assert finding.signed_length < finding.log_length


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["UPDATE steps SET observation = x'00' WHERE episode = 1"], "do not follow"),
        (["UPDATE steps SET reward = 1.0 WHERE episode = 2"], "do not follow"),
        (["DELETE FROM steps WHERE episode = 1 AND number = 2"], "are not those"),
        (["DELETE FROM steps WHERE episode = 2"], "are not those"),
        (
            [
                "DELETE FROM steps WHERE episode = 2",
                "DELETE FROM episodes WHERE id = 'second'",
            ],
            "episode second is missing",
        ),
        (
            ["UPDATE episodes SET key = -key", "UPDATE episodes SET key = key + 3"],
            "do not follow",
        ),
        ([f"UPDATE episodes SET opening = {OTHER_OPENING}"], "did not begin"),
        ([f"UPDATE episodes SET opening_digest = '{ZEROS}'"], "did not begin"),
        (["UPDATE episodes SET num_copied = 1"], "did not begin"),
        (["UPDATE episodes SET closed = 'expired' WHERE id = 'first'"], "did not end"),
        (["DELETE FROM log WHERE sequence = 3"], "entry 3 of the log is missing"),
        (["DELETE FROM log WHERE sequence > 4"], "its end is cut off"),
        (
            ["UPDATE runs SET log_length = 4", "DELETE FROM log WHERE sequence > 4"],
            "its end is cut off",
        ),
        (
            ["UPDATE log SET body = CAST(replace(body, '.', ',') AS BLOB)"],
            "not those that were",
        ),
        ([f"UPDATE runs SET final_weights = '{ZEROS}'"], "contradicts its log"),
        (["UPDATE runs SET opening = replace(opening, '\"a\"', '\"b\"')"], "not opened as"),
        ([f"UPDATE runs SET simulator = '{ZEROS}'"], "not opened as"),
        (["UPDATE checkpoints SET envelope = x'00'"], "does not verify"),
        (["UPDATE log SET body = x'00' WHERE sequence = 3"], "entry 3 of the log is missing"),
        (["UPDATE log SET body = CAST('[]' AS BLOB) WHERE sequence = 3"], "entry 3 of the log is"),
        (["UPDATE steps SET head = x'00' WHERE episode = 2"], "do not follow"),
        (["UPDATE steps SET reward = 9e999 WHERE episode = 2"], "do not follow"),
        (["UPDATE steps SET observation = x'ff' WHERE episode = 2"], "is garbled"),
        (["UPDATE episodes SET opening = '{}' WHERE id = 'second'"], "is garbled"),
        (["UPDATE log SET body = 'text'"], "is missing, garbled or out of place"),
        (["UPDATE checkpoints SET envelope = 'text'"], "this is not an envelope of ours"),
        (["UPDATE episodes SET opening = x'7b7d' WHERE id = 'second'"], "is garbled"),
        (["UPDATE episodes SET opening = CAST(opening || ' ' AS BLOB)"], "is garbled"),
        (
            ["UPDATE steps SET observation = NULL WHERE episode = 2"],
            "is missing and was not erased",
        ),
        (["UPDATE episodes SET closed = 'closed' WHERE id = 'second'"], "has no such entry"),
        (["UPDATE episodes SET run = 'other' WHERE id = 'second'"], "has 1 episodes, but the log"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_tampered_run_record_is_reported_as_broken(scene, statements, problem):
    scene.change(*statements)
    finding = scene.verify()
    assert any(problem in sentence for sentence in finding.problems), finding.problems
    assert finding.grade == "broken"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET opening = '{}'",
        "UPDATE runs SET log_length = 'long'",
    ],
)
def test_verifying_a_garbled_run_raises_an_error_that_names_the_run(scene, statement):
    scene.change(statement)
    with pytest.raises(EvidenceError, match=f"record of run {scene.run} is garbled"):
        scene.verify()


def test_a_deleted_run_is_distinguished_from_a_run_that_never_existed(scene):
    for name in ("never", "", "../keys"):
        with pytest.raises(NotFound):
            scene._replace(run=name).verify()
    scene.change(*(f"DELETE FROM {table}" for table in ("checkpoints", "steps", "episodes")))
    scene.change("DELETE FROM log", "DELETE FROM runs")
    with pytest.raises(
        EvidenceError, match="is missing from the ledger, but the evidence mirror has 1"
    ):
        scene.verify()


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE runs SET final_weights = '{ZEROS}'",
        "UPDATE runs SET final_weights = NULL",
        "UPDATE runs SET signature = 'somebody'",
    ],
)
def test_a_changed_run_closing_is_reported(scene, statement):
    scene.ledger.close_run(scene.run, RunClosing(final_weights=FINAL))
    scene.seal()
    scene.change(statement)
    assert any("clos" in problem for problem in scene.verify().problems)


def close_signed(scene, weights):
    run_weights = RunWeights(run=scene.run, simulator=SIMULATOR, weights=weights)
    signature = sign_weights(run_weights, ensure_signer(scene.folder / "steps"))
    scene.ledger.close_run(scene.run, RunClosing(final_weights=FINAL, signature=signature))
    scene.seal()


def test_weights_signed_by_their_step_are_reported_as_signed(scene):
    close_signed(scene, FINAL)
    finding = scene.verify()
    assert (finding.weights, finding.problems) == ("signed", ())


def test_a_step_signature_over_other_weights_is_reported(scene):
    close_signed(scene, records.digest("others"))
    assert any("is not signed by the step" in problem for problem in scene.verify().problems)


def test_a_step_signature_with_an_untrusted_key_is_reported(scene):
    close_signed(scene, FINAL)
    shutil.rmtree(scene.folder / "steps")
    assert any("is not trusted" in problem for problem in scene.verify().problems)


def test_a_checkpoint_without_a_mirror_copy_is_reported(scene):
    scene.copies[0].unlink()
    assert any(
        "has no copy in the evidence mirror" in problem for problem in scene.verify().problems
    )


def test_the_mirror_copy_of_a_checkpoint_suffices_for_verification(scene):
    scene.change("DELETE FROM checkpoints")
    assert scene.verify().grade == "verified"
    scene.change("DELETE FROM log WHERE sequence > 4")
    assert any("its end is cut off" in problem for problem in scene.verify().problems)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"run": "other"}, "of run other"),
        ({"length": 3}, "for 3 entries"),
        ({"simulator": ZEROS}, f"for {ZEROS}"),
        ({"root": ZEROS}, "are not those that were signed"),
    ],
)
def test_a_checkpoint_signed_for_another_run_simulator_or_log_is_reported(scene, fields, words):
    log = [entry.body for entry in scene.ledger.logs.entries(scene.run)]
    defaults = {
        "run": scene.run,
        "simulator": SIMULATOR,
        "length": 4,
        "root": merkle_root(log[:4]),
        "traffic": Traffic(),
    }
    envelope = sign_checkpoint(
        RunCheckpoint(**{**defaults, **fields}), ensure_signer(scene.folder / "keys")
    )
    scene.mirror.put(checkpoint_name(scene.run, 4), envelope)
    assert any(words in problem for problem in scene.verify().problems)


def test_an_unexpected_file_among_a_runs_mirror_copies_is_reported(scene):
    scene.mirror.put(f"{scene.run}/notes.txt", b"mine")
    assert any("notes.txt does not verify" in problem for problem in scene.verify().problems)


class BusyLedger:
    """A ledger to which a service adds records after every read."""

    def __init__(self, scene):
        self.scene = scene
        self.num_looks = 0

    @property
    def logs(self):
        return self

    def __getattr__(self, name):
        ledger = self.scene.ledger
        member = getattr(ledger if hasattr(ledger, name) else ledger.logs, name)
        if name == "attestations":
            return member

        def read_and_serve(*arguments, **keywords):
            result = member(*arguments, **keywords)
            self.serve()
            return result

        return read_and_serve

    def serve(self):
        self.num_looks += 1
        if self.num_looks > 6:
            return
        self.scene.play(f"new {self.num_looks}", "x", close=self.num_looks % 2 == 0)
        if self.num_looks == 4:
            episode = self.scene.ledger.episode("second")
            ending = self.scene.run, episode.id, len(episode.steps), episode.head, "expired"
            self.scene.ledger.write([EpisodeClosed(*ending)])
        if self.num_looks == 6:
            self.scene.ledger.close_run(self.scene.run, RunClosing(final_weights=FINAL))
        self.scene.seal()


@pytest.mark.parametrize("num_looks", range(7))
def test_a_run_that_is_served_during_the_audit_has_no_problems(scene, num_looks):
    ledger = BusyLedger(scene)
    ledger.num_looks = num_looks
    assert scene.verify(ledger).problems == ()
    assert scene.verify().grade == "verified"


def test_a_restored_old_ledger_is_reported(scene):
    with sqlite3.connect(scene.folder / "ledger.db") as database:
        database.execute(f"VACUUM INTO '{scene.folder}/old.db'")
    scene.play("third", "d")
    scene.seal()
    scene.ledger.close()
    for file in scene.folder.glob("ledger.db*"):
        file.unlink()
    shutil.copy(scene.folder / "old.db", scene.folder / "ledger.db")
    assert any("an old ledger was restored" in problem for problem in scene.verify().problems)
    scene.play("other", "e")
    scene.play("another", "f")
    assert any("not those that were signed" in problem for problem in scene.verify().problems)


def test_a_replaced_mirror_copy_of_a_checkpoint_is_reported(scene):
    scene.copies[0].write_bytes(b"{}")
    assert any("does not verify" in problem for problem in scene.verify().problems)


def test_checkpoints_signed_with_a_rotated_key_verify_until_the_key_is_removed(scene):
    old_key = ensure_signer(scene.folder / "keys").public_key.keyid
    rotate(scene.folder / "keys")
    scene.play("third", "d")
    scene.seal()
    assert scene.verify().problems == ()
    (scene.folder / "keys" / "trusted" / f"{old_key}.pem").unlink()
    assert any("is not trusted" in problem for problem in scene.verify().problems)


def test_a_run_with_an_erased_episode_has_no_problems(scene):
    scene.ledger.erase_texts("first")
    assert scene.verify().problems == ()


@pytest.mark.parametrize("is_opened", [True, False], ids=["a run", "no run"])
def test_the_gc_threshold_is_raised_during_run_verification_and_then_restored(
    scene, monkeypatch, is_opened
):
    original, calls = gc.get_threshold(), []
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, *original[1:]))
    monkeypatch.setattr(gc, "set_threshold", lambda *values: calls.append(values))
    with nullcontext() if is_opened else pytest.raises(NotFound):
        verify_run(scene.run if is_opened else "0" * 32, scene.ledger, scene.evidence)
    assert calls == [(10_000, *original[1:]), (700, *original[1:])]


@pytest.mark.parametrize("threshold", [0, 10_000, 50_000])
def test_run_verification_does_not_change_a_disabled_or_high_gc_threshold(
    scene, monkeypatch, threshold
):
    monkeypatch.setattr(gc, "get_threshold", lambda: (threshold, 10, 10))
    monkeypatch.setattr(gc, "set_threshold", lambda *_: pytest.fail("it was changed"))
    assert scene.verify().problems == ()

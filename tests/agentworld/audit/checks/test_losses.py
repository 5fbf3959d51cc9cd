"""A backup that replaced the ledger is broken until its restore is declared."""

import shutil
import sqlite3
from contextlib import closing
from functools import partial

import pytest

import make.ledger
from agentworld.audit.checks.alias_history import alias_problems
from agentworld.audit.checks.losses import missing
from agentworld.audit.checks.run import verify_run
from agentworld.errors import Conflict, EvidenceError, NotFound
from agentworld.records.run import RunOpening
from agentworld.records.statements.alias import AliasMove
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.statements.signer import StatementSigner
from make import records

pytestmark = pytest.mark.compute

SIMULATOR = records.digest("simulator")
OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))
AT = "2026-03-01T00:00:00.000+00:00"


class Place:
    """A scene whose ledger is backed up and restored."""

    def __init__(self, scene):
        self.scene = scene

    @property
    def statement_signer(self):
        keys = self.scene.folder / "keys"
        signer, trusted = partial(ensure_signer, keys), partial(load_trusted, keys)
        mirror = self.scene.mirror
        return StatementSigner(self.scene.ledger, signer, mirror, trusted=trusted, step_keys=dict)

    def move(self, simulator):
        move = AliasMove(kind="simulator", simulator=records.digest(simulator), by="ada")
        AliasMoveSigner(self.scene.ledger, self.statement_signer).move(
            "stable", move, None, simulator, dry_run=False
        )

    def erase(self, episode):
        with self.statement_signer.declaring("erasure", episode) as declare:
            self.scene.ledger.erase_texts(episode, "ada", declare)

    def back_up(self, name):
        with closing(sqlite3.connect(self.scene.folder / "ledger.db")) as database:
            database.execute(f"VACUUM INTO '{self.scene.folder}/{name}.db'")

    def restore(self, name):
        for file in self.scene.folder.glob("ledger.db*"):
            file.unlink()
        shutil.copy(self.scene.folder / f"{name}.db", self.scene.folder / "ledger.db")

    def missing(self):
        scene = self.scene
        return missing(scene.ledger, scene.mirror, scene.evidence.trusted)

    def declare(self, at=AT):
        self.statement_signer.ensure_genesis(restored=True)
        for declaration in self.missing().declarations("a disk", "ada", at):
            self.statement_signer.declare(declaration)

    def alias_problems(self):
        ledger = self.scene.ledger
        return [*alias_problems(ledger.aliases, ledger.attestations, self.scene.evidence)]


@pytest.fixture
def place(first_place, tmp_path):
    """A scene with a backup `older`, and a backup `old` from after a further move and episode."""
    make.ledger.copy_store(first_place.scene.folder, tmp_path)
    return Place(first_place.scene._replace(folder=tmp_path))


@pytest.fixture(scope="module")
def first_place(first_scene, tmp_path_factory):
    """The original that the tests copy and restore."""
    scene = first_scene._replace(folder=tmp_path_factory.mktemp("place"))
    make.ledger.copy_store(first_scene.folder, scene.folder)
    place = Place(scene)
    place.statement_signer.copy_missing()
    place.back_up("older")
    place.move("old")
    scene.play("third", "d")
    scene.seal()
    place.back_up("old")
    place.move("new")
    place.erase("first")
    scene.play("fourth", "e")
    scene.seal()
    return place


@pytest.fixture
def lost_run(place):
    """A run that is in no backup."""
    return place.scene.ledger.open_run(OPENING, SIMULATOR).id


def test_nothing_is_missing_from_a_ledger_that_was_not_restored(place):
    before = place.scene.mirror.names()
    rows = place.missing()
    assert place.scene.mirror.names() == before
    assert (rows.runs, rows.others) == ({}, ())
    assert rows.declarations("why", "ada", AT) == []


def test_a_ledger_after_an_undeclared_restore_has_problems(place, lost_run):
    place.scene.seal()
    place.restore("old")
    finding = place.scene.verify()
    assert any("its end is cut off" in problem for problem in finding.problems)
    assert any("the erasure" in problem for problem in finding.problems)
    assert any(records.digest("new") in problem for problem in place.alias_problems())
    with pytest.raises(EvidenceError, match=f"run {lost_run} is missing from the ledger"):
        place.scene._replace(run=lost_run).verify()


def test_declaring_a_restore_during_an_audit_removes_problems_and_adds_none(place):
    place.restore("old")
    scene = place.scene
    evidence = scene.evidence.for_many(scene.ledger.attestations)
    before = verify_run(scene.run, scene.ledger, evidence).problems
    place.declare()
    after = verify_run(scene.run, scene.ledger, evidence).problems
    assert {*after} < {*before}


def test_a_run_after_a_declared_restore_is_verified_and_notes_the_loss(place, lost_run):
    place.scene.seal()
    place.restore("old")
    rows = place.missing()
    assert rows.runs.keys() == {place.scene.run, lost_run}
    assert {name.partition("/")[0] for name in rows.others} == {
        "alias-changes",
        "episode-erasures",
    }
    place.declare()
    finding = place.scene.verify()
    assert (finding.grade, finding.problems) == ("verified", ())
    (note,) = finding.notes
    assert note == f"declared lost on {AT}: 1 of its signed copies (a disk)"
    assert place.alias_problems() == []
    assert place.scene.verify_episode("third").grade == "verified"
    with pytest.raises(NotFound):
        place.scene._replace(run=lost_run).verify()
    assert (place.missing().runs, place.missing().others) == ({}, ())


def test_a_run_that_lost_entries_refuses_episodes_and_a_new_run_accepts_episodes(place):
    place.restore("old")
    place.declare()
    with pytest.raises(Conflict, match="lost entries"):
        place.scene.play("fifth", "x")
    assert place.scene.seal() == 0
    new_scene = place.scene._replace(run=place.scene.ledger.open_run(OPENING, SIMULATOR).id)
    new_scene.play("sixth", "x")
    new_scene.seal()
    assert new_scene.verify().grade == place.scene.verify().grade == "verified"


def test_aliases_can_be_moved_and_episodes_erased_after_a_declared_restore(place):
    place.restore("old")
    place.declare()
    place.move("newer")
    place.erase("first")
    assert place.alias_problems() == []
    assert place.scene.verify().problems == ()


def test_the_name_of_a_lost_run_cannot_be_reused(place, lost_run):
    place.scene.seal()
    place.restore("old")
    place.declare()
    with pytest.raises(Conflict, match="was lost when the ledger was restored"):
        place.scene.ledger.open_run(OPENING, SIMULATOR, lost_run)


def test_restoring_an_older_backup_needs_another_declaration(place):
    place.restore("old")
    place.declare()
    place.restore("older")
    assert any("put in its place" in problem for problem in place.scene.verify().problems)
    assert any("put in its place" in problem for problem in place.alias_problems())
    place.declare("2026-04-01T00:00:00.000+00:00")
    assert place.scene.verify().problems == ()
    assert place.alias_problems() == []
    assert len(place.scene.verify().notes) == 1


def test_a_restore_declaration_does_not_cover_later_losses(place):
    place.restore("old")
    place.declare()
    place.scene.change("DELETE FROM log WHERE sequence = (SELECT max(sequence) FROM log)")
    assert any("its end is cut off" in problem for problem in place.scene.verify().problems)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM attestations WHERE kind = 'restore' AND run != ''",
        "DELETE FROM attestations WHERE kind = 'restore' AND run = ''",
        "UPDATE attestations SET envelope = x'00' WHERE kind = 'restore'",
        "UPDATE attestations SET subject = 'other' WHERE kind = 'restore'",
    ],
)
def test_a_changed_or_deleted_restore_declaration_is_reported(place, statement):
    place.restore("old")
    place.declare()
    place.scene.change(statement)
    problems = [*place.scene.verify().problems, *place.alias_problems()]
    assert any("the restore" in problem for problem in problems), problems


def test_a_restore_to_before_the_genesis_blocks_signing_until_its_declaration(scene):
    place = Place(scene)
    place.back_up("old")
    scene.ledger.aliases.set("stable", records.digest("unsigned"), "ada")
    place.statement_signer.copy_missing()
    place.restore("old")
    scene.play("third", "d")
    for sign in (place.statement_signer.copy_missing, scene.seal):
        with pytest.raises(Conflict, match="begun with another ledger.* restored --reason"):
            sign()
    assert any("does not have it" in problem for problem in place.alias_problems())
    place.declare()
    assert place.alias_problems() == []
    assert scene.seal() == 1

"""Changes of the history of aliases are found, with the alias, the time and the change."""

import re
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import make.ledger
from agentworld.audit.checks.alias_history import alias_problems
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger import Ledger
from agentworld.records.gate import Gate
from agentworld.records.statements.alias import AliasMove, Canary
from agentworld.signing.keys import ensure_signer, load_trusted, rotate
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.statements.signer import StatementSigner
from agentworld.storage.objects import WriteOnce
from make import records
from make.template import copied

FIRST, SECOND, THIRD = map(records.digest, ("first", "second", "third"))

UNVERIFIED = r"^the statement of alias 'stable' at \S+ does not verify"


class Scene(NamedTuple):
    """A store in which aliases were moved."""

    folder: Path
    ledger: Ledger

    @property
    def mirror(self):
        return WriteOnce(str(self.folder / "mirror"))

    @property
    def statement_signer(self):
        keys = self.folder / "keys"
        signer, trusted = partial(ensure_signer, keys), partial(load_trusted, keys)
        return StatementSigner(self.ledger, signer, self.mirror, trusted=trusted, step_keys=dict)

    def move(self, alias, simulator, **fields):
        move = AliasMove(kind="simulator", simulator=simulator, by="ada", **fields)
        AliasMoveSigner(self.ledger, self.statement_signer).move(
            alias, move, None, simulator[-60:], dry_run=False
        )

    def change(self, *statements):
        with closing(sqlite3.connect(self.folder / "ledger.db")) as database, database:
            for statement in statements:
                assert database.execute(statement).rowcount != 0

    def problems(self):
        evidence = Evidence(load_trusted(self.folder / "keys"), self.mirror)
        return list(alias_problems(self.ledger.aliases, self.ledger.attestations, evidence))


@pytest.fixture
def scene(tmp_path):
    """An alias that was set before moves were signed and then moved twice, and another alias."""
    scene = copied(build_scene, tmp_path)
    yield scene
    scene.ledger.close()


def build_scene(store):
    ledger = Ledger(make.ledger.laid(f"sqlite:///{store}/ledger.db"))
    scene = Scene(store, ledger)
    ledger.aliases.set("stable", FIRST, "ada")
    scene.move("stable", SECOND, canary=Canary(simulator=FIRST, percent=10))
    scene.move("stable", THIRD)
    scene.move("other", FIRST)
    return scene


def test_an_unchanged_alias_history_verifies_before_and_after_a_key_rotation(scene):
    assert scene.problems() == []
    rotate(scene.folder / "keys")
    scene.move("stable", FIRST)
    AliasMoveSigner(scene.ledger, scene.statement_signer).end("stable", "bob", "end", dry_run=False)
    scene.move("stable", records.digest("fourth"))
    assert scene.problems() == []


@pytest.mark.parametrize(
    "least", [-6.501161575064481e16, 2.0**53, -0.0, 5e-324, 1.7e308, 1e21, 123456789012345680.0]
)
def test_an_alias_history_with_any_gate_threshold_has_no_problems(scene, least):
    gate = (Gate(metric="live_gain", least=least),)
    scene.move("stable", FIRST, gate=gate, override="as it should be")
    assert scene.ledger.aliases.history("stable")[-1].gate[0].least == least
    assert scene.problems() == []


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (f"UPDATE aliases SET simulator = '{FIRST}' WHERE sequence = 3", f"says that .*{FIRST}"),
        ("UPDATE aliases SET set_by = 'eve' WHERE sequence = 2", "ledger says that .*'eve'"),
        ("UPDATE aliases SET set_by = 'eve' WHERE sequence = 1", "ledger says that .*'eve'"),
        ("UPDATE aliases SET at = '2026-01-01' WHERE sequence = 3", "from 2026-01-01 on"),
        ("UPDATE aliases SET override = 'no' WHERE sequence = 3", "the ledger says that"),
        ("UPDATE aliases SET canary_percent = 90 WHERE sequence = 2", "the ledger says that"),
        ("UPDATE aliases SET canary_percent = 90 WHERE sequence = 3", "alias 'stable' is garbled"),
        ("UPDATE aliases SET ended = 1 WHERE sequence = 3", "'stable' meant nothing from"),
        ("UPDATE aliases SET gate = 'x' WHERE sequence = 4", "alias 'other' is garbled"),
        ("UPDATE aliases SET alias = 'other' WHERE sequence = 3", "alias 'stable' meant"),
        (
            "UPDATE aliases SET sequence = 9 WHERE sequence = 2",
            "'stable' are not in the signed order",
        ),
        ("DELETE FROM aliases WHERE sequence = 1", f"{FIRST} .*the ledger does not have it"),
        ("DELETE FROM aliases WHERE sequence = 3", f"{THIRD} .*the ledger does not have it"),
        ("DELETE FROM aliases WHERE alias = 'other'", "'other' .*the ledger does not have it"),
        (
            "INSERT INTO aliases (alias, simulator, set_by, at, ended)"
            f" VALUES ('planted', '{FIRST}', 'eve', '2026-01-01', 0)",
            "alias 'planted' meant .* from 2026-01-01 on, by 'eve', which is not signed",
        ),
        ("DELETE FROM attestations WHERE sequence = 3", f"{THIRD} .*is gone from the ledger"),
        ("DELETE FROM attestations", f"statement that alias 'stable' .*{SECOND}"),
        ("UPDATE attestations SET kind = 'edge' WHERE sequence = 3", "is gone from the ledger"),
        ("UPDATE attestations SET at = '2026' WHERE sequence = 3", "at 2026 does not verify"),
        ("UPDATE attestations SET subject = 'x' WHERE sequence = 3", UNVERIFIED),
        ("UPDATE attestations SET name = 'x' WHERE sequence = 3", UNVERIFIED),
        ("UPDATE attestations SET envelope = x'00' WHERE sequence = 3", "does not verify"),
        ("UPDATE attestations SET envelope = x'00' WHERE kind = 'genesis'", "held unsigned"),
        ("UPDATE attestations SET at = '2026' WHERE kind = 'genesis'", "held unsigned"),
    ],
)
def test_each_change_of_alias_rows_or_statements_is_reported(scene, statement, problem):
    scene.change(statement)
    problems = scene.problems()
    assert any(re.search(problem, sentence) for sentence in problems), problems


def test_an_alias_move_deleted_with_its_statement_is_found_by_the_mirror_copy(scene):
    scene.change(
        "DELETE FROM aliases WHERE sequence = 3", "DELETE FROM attestations WHERE sequence = 3"
    )
    statement_problem, move_problem = scene.problems()
    assert THIRD in statement_problem
    assert "is gone from the ledger; restore it" in statement_problem
    assert THIRD in move_problem
    assert "the ledger does not have it" in move_problem


def test_two_alias_moves_swapped_with_their_statements_are_reported(scene):
    scene.change(
        "UPDATE aliases SET sequence = -sequence WHERE sequence IN (2, 3)",
        "UPDATE aliases SET sequence = 5 + sequence WHERE sequence < 0",
        "UPDATE attestations SET sequence = -sequence WHERE sequence IN (2, 3)",
        "UPDATE attestations SET sequence = 5 + sequence WHERE sequence < 0",
    )
    assert scene.problems() == ["the changes of alias 'stable' are not in the signed order"]


def test_a_signed_move_after_an_unsigned_move_is_not_reported(scene):
    scene.ledger.aliases.set("stable", FIRST, "eve")
    scene.move("stable", records.digest("fourth"))
    (problem,) = scene.problems()
    assert problem.endswith("by 'eve', which is not signed")


def test_unsigned_aliases_are_no_problem_before_the_first_signed_move(tmp_path):
    ledger = Ledger(make.ledger.laid(f"sqlite:///{tmp_path}/ledger.db"))
    ledger.aliases.set("stable", FIRST, "ada")
    ensure_signer(tmp_path / "keys")
    assert Scene(tmp_path, ledger).problems() == []
    ledger.close()


class GrowingHistory:
    """An alias history to which a service adds a move after each read."""

    def __init__(self, scene):
        self.scene = scene
        self.num_looks = 0

    def __getattr__(self, name):
        def read(*arguments, **keywords):
            ledger = self.scene.ledger
            table = ledger.aliases if name == "readable_history" else ledger.attestations
            result = getattr(table, name)(*arguments, **keywords)
            self.num_looks += 1
            self.scene.move("stable", records.digest(f"look {self.num_looks}"))
            return result

        return read


@pytest.mark.compute
def test_an_alias_history_that_grows_during_the_audit_has_no_problems(scene):
    history = GrowingHistory(scene)
    evidence = Evidence(load_trusted(scene.folder / "keys"), scene.mirror)
    assert list(alias_problems(history, history, evidence)) == []
    assert history.num_looks > 3

"""Every kind of statement: each change of its row and of its copy is reported."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.lineage.base import VersionRef
from agentworld.records.attestation import Attestation
from agentworld.records.statements.base import statement_kinds
from agentworld.signing.envelope import read_unverified, sign
from agentworld.signing.keys import ensure_signer
from make.kinds import OF_AGENT, RowNames, Store, every_kind
from make.template import copied

pytestmark = pytest.mark.compute

KINDS = sorted([*statement_kinds(), OF_AGENT])


class Scene:
    """A store in which one statement is tampered with."""

    def __init__(self, store: Store, kind: str) -> None:
        self.store = store
        self.kind = kind
        self.names: RowNames = store.kinds[kind]
        self.row = self.row_of(self.names.own)

    def row_of(self, name: str) -> Attestation:
        (row,) = [row for row in self.store.ledger.attestations.all() if row.name == name]
        if self.kind == "genesis" and hasattr(self, "row"):  # a second one, signed by our key
            return row._replace(envelope=self.store.genesis)
        return row

    @property
    def older(self) -> Attestation:
        return self.row_of(self.names.older)

    @property
    def others(self) -> Attestation:
        return self.row_of(self.names.others)

    @property
    def copy(self):
        return self.store.folder / "mirror" / self.names.own

    def write(self, **columns: object) -> None:
        """Changes the database as an attacker would."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self._execute(f"UPDATE attestations SET {names} WHERE name = ?", *columns.values())

    def remove(self) -> None:
        self._execute("DELETE FROM attestations WHERE name = ?")

    def _execute(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.store.folder / "ledger.db")) as database, database:
            assert database.execute(statement, (*values, self.names.own)).rowcount == 1

    def problems(self, at: datetime | None = None) -> list[str]:
        return [*verify_everything(self.store.sources.as_of(at)).problems]

    def places(self) -> set[str]:
        """The names of the statement in problems."""
        row = self.row
        names = {row.name, row.subject, row.run, "held unsigned" if self.kind == "genesis" else ""}
        return names - {""}

    def audit(self) -> list[str]:
        """The problems, of which at least one names the statement."""
        problems = self.problems()
        named_problems = [
            problem for problem in problems if any(place in problem for place in self.places())
        ]
        assert named_problems, problems
        return problems


@pytest.fixture(params=KINDS)
def scene(request, tmp_path):
    store = copied(every_kind, tmp_path)
    yield Scene(store, request.param)
    store.ledger.close()


def test_a_store_with_statements_of_every_kind_has_no_problems(tmp_path):
    store = copied(every_kind, tmp_path)
    assert sorted(store.kinds) == KINDS
    assert verify_everything(store.sources).problems == ()


def test_a_mirror_copy_replaced_by_an_older_statement_is_reported(scene):
    scene.copy.write_bytes(scene.older.envelope)
    matches = [problem for problem in scene.audit() if "differs in the evidence mirror" in problem]
    assert len(matches) == 1 or (matches and scene.kind == "edge")  # also reported for its agent


def test_a_mirror_copy_of_another_tenants_statement_is_reported_without_its_names(scene):
    scene.copy.write_bytes(scene.others.envelope)
    problems = scene.audit()
    assert any("differs in the evidence mirror" in problem for problem in problems)
    words = {scene.others.name, scene.others.subject, scene.others.run, "acme"} - scene.places()
    assert not [problem for problem in problems if any(word in problem for word in words - {""})]


def test_a_mirror_copy_with_one_changed_byte_is_reported(scene):
    copy = bytearray(scene.copy.read_bytes())
    copy[len(copy) // 2] ^= 1
    scene.copy.write_bytes(copy)
    assert any("differs in the evidence mirror" in problem for problem in scene.audit())


def test_the_next_service_writes_a_missing_mirror_copy(scene):
    """The copy may have been deleted, or its writer killed before it was made."""
    scene.copy.unlink()
    assert scene.problems() == []
    scene.store.statement_signer.copy_missing()
    assert scene.copy.read_bytes() == scene.row.envelope


def test_a_deleted_statement_row_is_reported_from_its_mirror_copy(scene):
    scene.remove()
    assert any("is gone from the ledger" in problem for problem in scene.audit())


def test_a_deleted_statement_row_is_reported_only_from_its_signing_time_on(scene):
    signing_time = datetime.fromisoformat(scene.row.at)
    scene.remove()
    problems_by_time = [
        [problem for problem in scene.problems(at) if "is gone from the ledger" in problem]
        for at in (signing_time - timedelta(milliseconds=1), signing_time)
    ]
    assert [bool(sentences) for sentences in problems_by_time] == [False, True]


def test_a_statement_row_whose_time_differs_from_the_signed_time_is_reported(scene):
    scene.write(at="another")
    (first_problem, *_) = [
        problem for problem in scene.audit() if "its row differs from what was signed" in problem
    ]
    assert first_problem.endswith(f"(signed at {scene.row.at}, in the ledger at 'another')")


def test_a_statement_row_with_the_envelope_of_an_older_row_is_reported(scene):
    scene.write(envelope=scene.older.envelope)
    assert any("differs in the evidence mirror" in problem for problem in scene.audit())


def test_replacing_both_row_and_copy_by_an_older_statement_is_reported(scene):
    columns = scene.older._asdict()
    del columns["name"], columns["kind"]
    scene.write(**columns)
    scene.copy.write_bytes(columns["envelope"])
    if scene.kind == "genesis":  # a genesis has one place: the alias that it held is then unsigned
        assert any(
            "'stable'" in problem and "which is not signed" in problem
            for problem in scene.problems()
        )
    else:
        assert any("does not verify" in problem for problem in scene.audit())


def test_a_row_and_copy_signed_with_an_untrusted_key_are_reported(scene, tmp_path_factory):
    untrusted_signer = ensure_signer(tmp_path_factory.mktemp("stranger"))
    envelope = sign(read_unverified(scene.row.envelope, {}), untrusted_signer)
    scene.write(envelope=envelope)
    scene.copy.write_bytes(envelope)
    assert any("is not trusted" in problem for problem in scene.audit())


def test_verifying_an_agent_reports_its_deleted_validation(tmp_path):
    scene = Scene(copied(every_kind, tmp_path), "validation")
    row = scene.row
    scene.remove()
    problems = verify_agent(VersionRef(name="home-agent", version=2), scene.store.sources).problems
    assert any(
        row.name in problem and "is gone from the ledger" in problem for problem in problems
    ), problems
    scene.store.ledger.close()

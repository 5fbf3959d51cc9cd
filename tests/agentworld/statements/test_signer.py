"""A declaration is signed once, and the next service writes a missing copy."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import make.ledger
from agentworld.errors import Conflict, EvidenceError, NotFound, StoreError
from agentworld.ledger import Ledger
from agentworld.records.statements.alias import AliasEntry, AliasMove, alias_entries
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.genesis import GENESIS, Genesis
from agentworld.records.step_statement import StepStatement
from agentworld.serving.setup import statement_signer_of
from agentworld.signing.envelope import attest, verify_envelope
from agentworld.signing.keys import ensure_signer, load_trusted, public_pem
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.statements.signer import StatementSigner
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from make import records

OLD, NEW = records.digest("old"), records.digest("new")


class KilledMirror(WriteOnce):
    """An evidence mirror whose writer is killed before the write."""

    def put(self, name, data):
        if name != GENESIS:
            raise StoreError("killed")
        super().put(name, data)


class Scene(NamedTuple):
    """A ledger and its evidence mirror."""

    folder: Path
    ledger: Ledger

    @property
    def copies(self):
        return WriteOnce(str(self.folder / "mirror"))

    def statement_signer(self, store=WriteOnce, ledger=None, keys="keys"):
        key_folder = self.folder / keys
        signer, trusted = partial(ensure_signer, key_folder), partial(load_trusted, key_folder)
        mirror = store(str(self.folder / "mirror"))
        return StatementSigner(
            ledger or self.ledger, signer, mirror, trusted=trusted, step_keys=dict
        )

    def move(self, simulator, key="one", **statement_signer):
        move_signer = AliasMoveSigner(self.ledger, self.statement_signer(**statement_signer))
        move = AliasMove(kind="simulator", simulator=simulator, by="ada")
        return move_signer.move("stable", move, None, key, dry_run=False)

    @property
    def genesis(self):
        return verify_envelope(
            self.copies.get(GENESIS), Genesis, load_trusted(self.folder / "keys")
        )


@pytest.fixture
def scene(tmp_path):
    ledger = Ledger(make.ledger.laid(f"sqlite:///{tmp_path}/ledger.db"))
    yield Scene(tmp_path, ledger)
    ledger.close()


def test_moving_and_ending_an_alias_are_signed_and_copied(scene):
    scene.move(OLD)
    AliasMoveSigner(scene.ledger, scene.statement_signer()).end(
        "stable", "bob", "two", dry_run=False
    )
    rows = scene.ledger.attestations.find("alias", subject="stable")
    assert [scene.copies.get(row.name) for row in rows] == [row.envelope for row in rows]
    trusted = load_trusted(scene.folder / "keys")
    entries = [verify_envelope(row.envelope, AliasEntry, trusted) for row in rows]
    assert entries == alias_entries(scene.ledger.aliases.history("stable"))


def test_repeating_a_killed_move_writes_its_missing_copy(scene):
    with pytest.raises(StoreError, match="killed"):
        scene.move(OLD, store=KilledMirror)
    assert scene.copies.names("alias-changes/") == []
    scene.move(OLD)
    (row,) = scene.ledger.attestations.find("alias")
    assert scene.copies.names("alias-changes/") == [row.name]


def test_copy_missing_writes_a_missing_copy(scene):
    statement_signer = scene.statement_signer()
    statement_signer.copy_missing()
    with pytest.raises(StoreError, match="killed"):
        scene.move(OLD, store=KilledMirror)
    statement_signer.copy_missing()
    (row,) = scene.ledger.attestations.find("alias")
    assert scene.copies.get(row.name) == row.envelope


def test_a_ledger_has_one_genesis_with_its_earlier_changes(scene):
    change = scene.ledger.aliases.set("stable", OLD, "ada")
    scene.statement_signer().copy_missing()
    scene.ledger.aliases.set("planted", OLD, "eve")
    scene.statement_signer().copy_missing()
    scene.statement_signer(keys="keys of another replica").copy_missing()
    assert scene.genesis.changes == (change,)
    assert len(scene.ledger.attestations.find("genesis")) == 1


def test_a_restored_ledger_gets_its_genesis_from_the_mirror(scene):
    scene.move(OLD)
    old = Ledger(make.ledger.laid(f"sqlite:///{scene.folder}/old.db"))
    old.aliases.set("stable", NEW, "eve")
    scene.statement_signer(ledger=old).ensure_genesis(restored=True)
    scene.statement_signer(ledger=old).copy_missing()
    (row,) = old.attestations.find("genesis")
    assert row.envelope == scene.copies.get(GENESIS)
    assert scene.genesis.changes == ()
    old.close()


@pytest.fixture
def other(scene):
    """A second ledger with its own evidence mirror."""
    folder = scene.folder / "other"
    other = Scene(folder, Ledger(make.ledger.laid(f"sqlite:///{folder}/ledger.db")))
    yield other
    other.ledger.close()


def sign_with(scene, other):
    """All ways to sign statements of another ledger into the scene's evidence mirror."""
    statement_signer = partial(scene.statement_signer, ledger=other.ledger)
    run = other.ledger.open_run(make.ledger.OPENING, OLD)
    fields = {"artifact": NEW, "starting_weights": OLD, "simulator": OLD}
    move_signer = AliasMoveSigner(other.ledger, statement_signer())
    move = AliasMove(kind="simulator", simulator=OLD, by="ada")
    statement = StepStatement(kind="registration", envelope="{}")
    log_signer = LogCheckpointSigner(
        other.ledger, OLD, partial(ensure_signer, scene.folder / "keys"), scene.copies
    )
    return {
        "intervals": lambda: statement_signer().copy_missing(),
        "a move": lambda: move_signer.move("stable", move, None, "one", dry_run=False),
        "an edge": lambda: statement_signer().edge(run, Claim(agent="a", **fields)),
        "a log": log_signer.seal_all,
        "a statement": lambda: statement_signer().file(statement),
    }


@pytest.mark.parametrize("has_own_mirror", [False, True], ids=["new", "with a store of its own"])
@pytest.mark.parametrize("action", ["intervals", "a move", "an edge", "a log", "a statement"])
def test_a_mirror_refuses_another_ledger(scene, other, action, has_own_mirror):
    scene.move(OLD)
    if has_own_mirror:
        other.move(NEW)
    before = scene.copies.names()
    sign = sign_with(scene, other)[action]
    with pytest.raises(Conflict, match="the evidence mirror was begun with another ledger") as info:
        sign()
    assert "\n" not in str(info.value)
    assert scene.copies.names() == before
    assert other.ledger.attestations.find("edge") == []
    assert len(other.ledger.aliases.history()) == has_own_mirror


def test_a_ledger_with_its_own_mirror_is_refused_as_a_restored_backup(scene, other):
    scene.move(OLD)
    other.move(NEW)
    with pytest.raises(Conflict, match="begun with another ledger"):
        scene.statement_signer(ledger=other.ledger).ensure_genesis(restored=True)


def test_a_mirror_without_a_genesis_belongs_to_the_first_ledger_that_signs(scene, other):
    scene.copies.put("agent-edges/run/old.dsse.json", b"{}")
    scene.move(OLD)
    with pytest.raises(Conflict, match="begun with another ledger"):
        scene.statement_signer(ledger=other.ledger).copy_missing()


class SlowMirror(WriteOnce):
    """A mirror to which another replica writes the genesis during a request."""

    meanwhile = None

    def get(self, name):
        work, SlowMirror.meanwhile = SlowMirror.meanwhile, None
        data = None
        try:
            data = super().get(name)
        finally:
            if work:
                work()
        return data


def test_concurrent_replicas_write_one_genesis(scene):
    SlowMirror.meanwhile = scene.statement_signer(keys="keys of another replica").copy_missing
    scene.statement_signer(store=SlowMirror).copy_missing()
    assert len(scene.ledger.attestations.find("genesis")) == 1


def test_a_ledger_with_a_clusters_keys_is_not_signed_with_a_new_local_key(scene):
    stores = Stores.of(scene.folder)
    key = ensure_signer(scene.folder / "pod" / "simulator").public_key
    scene.ledger.signing_keys.use(key.keyid, public_pem(key).decode())
    with pytest.raises(NotFound, match="there is no signer"):
        statement_signer_of(stores, scene.ledger)
    pod_stores = stores.model_copy(update={"keys": scene.folder / "pod"})
    statement_signer_of(pod_stores, scene.ledger).copy_missing()
    assert verify_envelope(scene.copies.get(GENESIS), Genesis, {key.keyid: key}).changes == ()


@pytest.mark.parametrize("kind", ["alias", "edge"])
def test_a_statement_named_like_a_log_checkpoint_is_not_copied(scene, kind):
    scene.move(OLD)
    (row,) = scene.ledger.attestations.find("alias")
    scene.ledger.attestations.add(row._replace(name="run/000000000001.dsse.json", kind=kind))
    with pytest.raises(EvidenceError, match=r"run/000000000001.dsse.json of the ledger is not"):
        scene.statement_signer().copy_missing()
    assert scene.copies.names("run/") == []


def test_a_statement_of_an_untrusted_key_is_not_copied_and_blocks_no_other_copy(scene):
    other_signer = ensure_signer(scene.folder / "stranger")
    (entry,) = alias_entries([scene.ledger.aliases.set("planted", OLD, "eve")])
    scene.ledger.attestations.add(attest(entry, other_signer))
    with pytest.raises(StoreError, match="killed"):
        scene.move(OLD, store=KilledMirror)
    with pytest.raises(EvidenceError, match="alias-changes/simulator/planted/.* is not copied"):
        scene.statement_signer().copy_missing()
    (name,) = scene.copies.names("alias-changes/")
    assert name.startswith("alias-changes/simulator/stable/")

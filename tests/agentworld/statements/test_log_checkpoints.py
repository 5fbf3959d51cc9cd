"""Several signers of the same logs: replicas, rotated keys, and a forked ledger."""

import json
import sqlite3
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import make.ledger
from agentworld.audit.checks.run import verify_run
from agentworld.audit.read.evidence import Evidence
from agentworld.errors import EvidenceError, StoreError
from agentworld.ledger import Ledger
from agentworld.ledger.logs import Logs
from agentworld.ledger.writes import EpisodeOpened
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import RunOpening
from agentworld.signing.checkpoint import checkpoint_name, sign_checkpoint
from agentworld.signing.keys import ensure_signer, load_signer, load_trusted, rotate
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from make import records

OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))
SIMULATOR = records.digest("simulator")


class Scene(NamedTuple):
    """A run in a ledger that several signers sign."""

    folder: Path
    ledger: Ledger
    run: str

    @property
    def copies(self) -> WriteOnce:
        return WriteOnce(str(self.folder / "mirror"))

    def log_signer(self, keys="keys", ledger=None) -> LogCheckpointSigner:
        key_folder = self.folder / keys
        signer, trusted = partial(ensure_signer, key_folder), partial(load_trusted, key_folder)
        return LogCheckpointSigner(
            ledger or self.ledger, SIMULATOR, signer, self.copies, trusted=trusted
        )

    def copy(self, length: int) -> bytes:
        return self.copies.get(checkpoint_name(self.run, length))

    def replace_copy(self, length: int, envelope: bytes) -> None:
        (self.folder / "mirror" / checkpoint_name(self.run, length)).write_bytes(envelope)

    def seal_and_die(self, keys="keys") -> bytes:
        """The copy that a service wrote before it was killed, without a row in the ledger."""
        ledger = Ledger(f"sqlite:///{self.folder}/ledger.db")
        ledger.logs = KilledLogs(ledger._database)
        with pytest.raises(StoreError):
            self.log_signer(keys, ledger).seal(self.run)
        ledger.close()
        return self.copy(1)


class KilledLogs(Logs):
    def add_checkpoint(self, *_):
        raise StoreError("killed")


@pytest.fixture
def scene(tmp_path):
    ledger = Ledger(make.ledger.laid(f"sqlite:///{tmp_path}/ledger.db"))
    yield Scene(tmp_path, ledger, ledger.open_run(OPENING, SIMULATOR).id)
    ledger.close()


def episode(run, name, **opening) -> Episode:
    return Episode.new(name, SIMULATOR, EpisodeOpening(run=run, **opening))


def grow(ledger, run, name):
    """Adds a log entry."""
    ledger.write([EpisodeOpened(episode(run, name))])


def key_of(envelope: bytes) -> str:
    return json.loads(envelope)["signatures"][0]["keyid"]


def test_a_rotated_key_signs_the_next_checkpoint_and_both_checkpoints_verify(scene):
    log_signer, keys = scene.log_signer(), scene.folder / "keys"
    log_signer.seal_all()
    rotate(keys)
    grow(scene.ledger, scene.run, "e")
    log_signer.seal_all()
    first, second = map(key_of, scene.ledger.logs.checkpoints(scene.run).values())
    assert (first != second, second) == (True, ensure_signer(keys).public_key.keyid)
    result = verify_run(scene.run, scene.ledger, Evidence(load_trusted(keys), scene.copies))
    assert (result.grade, result.signed_length) == ("verified", 2)


def test_a_rotated_key_does_not_sign_an_existing_checkpoint_again(scene):
    log_signer = scene.log_signer()
    log_signer.seal(scene.run)
    before = scene.copy(1)
    rotate(scene.folder / "keys")
    log_signer.seal(scene.run)
    assert scene.ledger.logs.checkpoints(scene.run) == {1: before} == {1: scene.copy(1)}


@pytest.mark.parametrize("keys", ["keys", "keys of its own"])
def test_the_ledger_keeps_the_copy_that_another_replica_signed(scene, keys):
    copy = scene.seal_and_die()
    rotate(scene.folder / "keys")
    scene.log_signer(keys).seal_all()
    assert scene.ledger.logs.checkpoints(scene.run) == {1: copy} == {1: scene.copy(1)}
    assert scene.log_signer(keys).seal_all() == 0


@pytest.mark.parametrize("keys", ["keys", "keys of its own"])
def test_a_forked_log_is_reported_and_not_signed(scene, keys):
    with sqlite3.connect(scene.folder / "ledger.db") as database:
        database.execute(f"VACUUM INTO '{scene.folder}/forked.db'")
    grow(scene.ledger, scene.run, "true")
    scene.log_signer().seal_all()
    fork = Ledger(f"sqlite:///{scene.folder}/forked.db")
    grow(fork, scene.run, "false")
    other_run = fork.open_run(OPENING, SIMULATOR).id
    with pytest.raises(EvidenceError, match=f"log of run {scene.run} has forked: of 2 entries"):
        scene.log_signer(keys, fork).seal_all()
    assert fork.logs.checkpoints(scene.run) == {}
    assert list(fork.logs.checkpoints(other_run)) == [1]
    fork.close()


def test_a_copy_with_other_traffic_counts_is_reported_as_a_fork(scene):
    grow(scene.ledger, scene.run, "true")
    log_signer, signer = scene.log_signer(), ensure_signer(scene.folder / "keys")
    checkpoint = log_signer._checkpoint(scene.run)
    traffic = checkpoint.traffic.model_copy(update={"num_steps": checkpoint.traffic.num_steps + 1})
    envelope = sign_checkpoint(checkpoint.model_copy(update={"traffic": traffic}), signer)
    scene.copies.put(checkpoint_name(scene.run, checkpoint.length), envelope)
    with pytest.raises(EvidenceError, match="has forked"):
        log_signer.seal(scene.run)


def test_a_copy_with_a_forged_signature_is_not_stored_in_the_ledger(scene):
    key_id = ensure_signer(scene.folder / "keys").public_key.keyid
    copy = scene.seal_and_die("keys of another")
    scene.replace_copy(1, copy.replace(key_of(copy).encode(), key_id.encode()))
    with pytest.raises(EvidenceError, match=f"1 entries of run {scene.run} cannot be signed"):
        scene.log_signer().seal_all()
    assert scene.ledger.logs.checkpoints(scene.run) == {}


def test_an_invalid_copy_is_not_stored_in_the_ledger(scene):
    scene.seal_and_die()
    scene.replace_copy(1, b"{}")
    with pytest.raises(EvidenceError, match="this is not an envelope of ours"):
        scene.log_signer().seal_all()
    assert scene.ledger.logs.checkpoints(scene.run) == {}


def test_unreadable_keys_of_the_service_raise_a_retryable_store_error(scene):
    signer = partial(load_signer, scene.folder / "gone")
    log_signer = LogCheckpointSigner(scene.ledger, SIMULATOR, signer, scene.copies)
    with pytest.raises(StoreError, match="cannot read its keys") as error:
        log_signer.seal(scene.run)
    assert error.value.retryable

"""An operator declares that a backup replaced the ledger, in a store and on a server."""

import json
import shutil
import sqlite3
from contextlib import closing
from functools import partial

import pytest

import make.service
from agentworld.ledger import Ledger
from agentworld.signing.checkpoint import checkpoint_name
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce


@pytest.fixture
def restored(call, example, tmp_path_factory):
    """A store whose ledger is from before another run was opened and an episode erased."""
    backup = tmp_path_factory.mktemp("backup") / "ledger.db"
    with sqlite3.connect(example.store / "ledger.db") as database:
        database.execute(f"VACUUM INTO '{backup}'")
    example.ledger.open_run(make.service.OPENING, make.service.SIMULATOR, "later")
    make.service.log_signer(example.store).seal_all()
    assert call(f"episode erase {example.episode} --yes --store {example.store}").code == 0
    for file in example.store.glob("ledger.db*"):
        file.unlink()
    shutil.copy(backup, example.store / "ledger.db")
    return example


@pytest.mark.waits
def test_audit_restored_prints_lost_records_and_declares_them_with_a_reason(call, restored):
    words = f"audit restored --store {restored.store}"
    verify = f"run verify {restored.run} --store {restored.store}"
    assert "the erasure" in call(verify).out
    result = call(words)
    assert result.code == 0, result.error
    assert result.out.splitlines()[:2] == [
        "run later lost entries of its log, or is missing:",
        f"  {checkpoint_name('later', 1)}",
    ]
    assert "lost episode-erasures/" in result.out
    assert result.out.endswith("nothing is recorded; add --reason TEXT to record it\n")
    assert call(verify).code == 8
    report = json.loads(call(f"{words} --reason 'a disk' --json").out)
    assert (list(report["runs"]), len(report["others"])) == (["later"], 1)
    assert call(verify).code == 0
    assert call(words).out == "the ledger has all that was signed\n"


def test_without_a_reason_nothing_is_signed(call, example):
    copies = WriteOnce(str(example.store / "mirror"))
    names_before = copies.names()
    result = call(f"audit restored --store {example.store}")
    assert result.out == "the ledger has all that was signed\n"
    assert (copies.names(), example.ledger.attestations.all()) == (names_before, [])
    shutil.rmtree(example.store / "keys")
    result = call(f"audit restored --store {example.store}")
    assert (result.code, result.out, result.error.count("\n")) == (2, "", 1)
    assert not (example.store / "keys").exists()


def test_an_erasure_with_the_mirror_of_another_ledger_is_refused_in_one_sentence(call, example):
    assert call(f"audit restored --reason 'a disk' --store {example.store}").code == 0
    with closing(sqlite3.connect(example.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations")
    result = call(f"episode erase {example.episode} --yes --store {example.store}")
    assert (result.code, result.out, result.error.count("\n")) == (2, "", 1)
    assert "the evidence mirror was begun with another ledger" in result.error
    assert example.ledger.episode(example.episode).opening


def test_a_run_with_declared_lost_entries_verifies_with_a_note(call, example):
    store = WriteOnce(str(example.store / "mirror"))
    (newest_name,) = store.names(f"{example.run}/")[-1:]
    later_name = checkpoint_name(example.run, 99)
    store.put(later_name, store.get(newest_name))
    call(f"audit restored --reason 'a disk' --store {example.store}")
    result = call(f"run verify {example.run} --store {example.store}")
    assert result.code == 0
    assert "1 of its signed copies (a disk)" in result.out


def test_a_reason_that_is_too_long_is_refused(call, restored):
    result = call(f"audit restored --reason {'x' * 1025} --store {restored.store}")
    assert (result.code, "cannot be declared" in result.error) == (2, True)


@pytest.mark.waits
def test_a_restored_ledger_server_named_in_the_environment_is_declared(
    call, tmp_path, monkeypatch, postgres_url
):
    copies = WriteOnce(f"file://{tmp_path}/copies")
    signer = partial(ensure_signer, tmp_path / "keys" / SIMULATOR_KEYS)
    lost_ledger = Ledger(f"sqlite:///{tmp_path}/lost.db")
    lost_ledger.open_run(make.service.OPENING, make.service.SIMULATOR, "gone")
    LogCheckpointSigner(lost_ledger, make.service.SIMULATOR, signer, copies).seal_all()
    lost_ledger.close()
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", postgres_url)
    monkeypatch.setenv("AGENTWORLD_MIRROR_URL", f"file://{tmp_path}/copies")
    monkeypatch.setenv("AGENTWORLD_KEYS", str(tmp_path / "keys"))
    words = f"--store {tmp_path}/store"
    assert "is missing from the ledger" in call(f"run verify gone {words}").error
    assert call(f"audit restored --reason 'a disk' {words}").out.endswith("recorded\n")
    assert "there is no run gone" in call(f"run verify gone {words}").error
    assert call(f"audit restored {words}").out == "the ledger has all that was signed\n"

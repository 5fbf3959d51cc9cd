"""Backups of a store, as commands."""

import json
import shutil

import pytest

from agentworld.storage.objects import ObjectStore


@pytest.fixture
def backed_up(call, example, tmp_path_factory):
    """Makes a backup of a store; returns its destination, its name and its work folder."""
    folder = tmp_path_factory.mktemp("backups")
    store, work = f"--store {example.store}", folder / "work"
    work.mkdir()
    begin_result = call(f"backup begin {folder}/all {work} {store}")
    assert "dump the databases into" in begin_result.out
    shutil.copy(example.store / "ledger.db", work / "ledger.dump")
    finish_result = call(f"backup finish {folder}/all {work} --keep 2 {store}")
    assert finish_result.code == 0, finish_result.error
    return folder / "all", finish_result.out.split()[0], work


def begin(call, destination, work, store):
    """Begins another backup of the same dump."""
    dump = (work / "ledger.dump").read_bytes()
    (work / "ledger.dump").unlink()
    call(f"backup begin {destination} {work} {store}")
    (work / "ledger.dump").write_bytes(dump)


def test_a_backup_is_listed_verified_and_restored(call, example, backed_up):
    destination, name, work = backed_up
    size = (example.store / "ledger.db").stat().st_size
    text = call(f"backup list {destination}").out
    assert text.startswith(f"{name}  ledger.dump {size:,} bytes; ")
    assert text.endswith(" signed copies\n")
    (backup,) = json.loads(call(f"backup list {destination} --json").out)
    assert (backup["name"], backup["dumps"]["ledger.dump"]["size"]) == (name, size)
    assert call(f"backup verify {destination}").out == f"{name} is whole\n"
    shutil.rmtree(example.store / "mirror")
    result = call(f"backup restore {destination} {name} {work} --store {example.store}")
    assert result.out.splitlines()[0] == str(work / "ledger.dump")
    assert result.out.endswith(f"and {backup['num_copies']} signed copies\n")
    assert call(f"run verify {example.run} --store {example.store}").code == 0


def test_verifying_an_incomplete_backup_prints_the_missing_files_and_fails(call, backed_up):
    destination, name, _ = backed_up
    shutil.rmtree(destination / "mirror")
    result = call(f"backup verify {destination} {name}")
    assert result.code == 8
    assert ".dsse.json is missing\n" in result.out
    assert "use another backup" in result.error


def test_backup_list_reports_a_damaged_manifest_and_lists_other_backups(call, example, backed_up):
    destination, name, work = backed_up
    store = f"--store {example.store}"
    begin(call, destination, work, store)
    newer_name = json.loads(call(f"backup finish {destination} {work} {store} --json").out)["name"]
    (destination / "backups" / name / "manifest.json").write_text("{")
    first, second = call(f"backup list {destination}").out.splitlines()
    assert first.startswith(f"{name}  backups/{name}/manifest.json in ")
    assert second.startswith(f"{newer_name}  ledger.dump")
    backups = json.loads(call(f"backup list {destination} --json").out)
    assert ["problem" in backup for backup in backups] == [True, False]


def test_a_finished_backup_prints_the_problems_of_the_stores(call, example, backed_up):
    destination, _, work = backed_up
    store = f"--store {example.store}"
    [copy, *_] = (example.store / "mirror").glob("*/*.json")
    copy.unlink()
    digest = ObjectStore(str(example.store / "objects")).put(b"a text")
    [text] = example.store.glob(f"objects/*/{digest.removeprefix('sha256:')}")
    text.write_bytes(b"damaged")
    begin(call, destination, work, store)
    result = call(f"backup finish {destination} {work} {store}")
    name = copy.relative_to(example.store / "mirror")
    assert f"{name} is in the backup but missing in the evidence mirror" in result.out
    assert f"the text {digest} is damaged and missing from the backup" in result.out

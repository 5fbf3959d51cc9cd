"""The records of a service that stores them where the environment says."""

import json
from functools import partial

import pytest

import make.service
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce


def grade_of(done) -> str:
    return json.loads(done.out)["grade"]


@pytest.mark.waits
def test_run_commands_read_the_ledger_server_named_in_the_environment(
    call, tmp_path, monkeypatch, postgres_url
):
    ledger, copies = Ledger(postgres_url), f"file://{tmp_path}/copies"
    run = ledger.open_run(make.service.OPENING, make.service.SIMULATOR)
    signer = partial(ensure_signer, tmp_path / "keys" / SIMULATOR_KEYS)
    LogCheckpointSigner(ledger, make.service.SIMULATOR, signer, WriteOnce(copies)).seal_all()
    ledger.close()
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", postgres_url)
    monkeypatch.setenv("AGENTWORLD_MIRROR_URL", copies)
    monkeypatch.setenv("AGENTWORLD_KEYS", str(tmp_path / "keys"))
    store = tmp_path / "store"
    (entry,) = json.loads(call(f"run list --store {store} --json").out)
    assert entry["id"] == run.id
    assert grade_of(call(f"run verify {run.id} --store {store} --json")) == "verified"
    assert not store.exists()


def test_run_verify_reads_the_mirror_named_in_the_environment(
    call, example, tmp_path_factory, monkeypatch
):
    mirror = tmp_path_factory.mktemp("elsewhere") / "copies"
    (example.store / "mirror").rename(mirror)
    words = f"run verify {example.run} --store {example.store} --json"
    assert grade_of(call(words)) == "broken"
    monkeypatch.setenv("AGENTWORLD_MIRROR_URL", f"file://{mirror}")
    assert grade_of(call(words)) == "verified"

import json

import pytest

from make import records


def signers(example) -> list[str]:
    """The ids of the keys that signed the run's log, in the order of its lengths."""
    envelopes = [
        envelope for _, envelope in sorted(example.ledger.logs.checkpoints(example.run).items())
    ]
    return [json.loads(envelope)["signatures"][0]["keyid"] for envelope in envelopes]


@pytest.mark.waits
def test_a_running_service_signs_with_a_rotated_key_and_its_run_verifies(call, example):
    (old_key,) = signers(example)
    new_key = call(f"signing-key rotate --store {example.store}").out.strip()
    keys = json.loads(call(f"signing-key list --store {example.store} --json").out)
    assert {key["key"]: key["signs"] for key in keys} == {old_key: False, new_key: True}
    call(f"run close {example.run} --weights {records.digest('final')} --url {example.url}")
    assert signers(example) == [old_key, new_key]
    report = json.loads(call(f"run verify {example.run} --store {example.store} --json").out)
    assert (report["grade"], report["signed_length"]) == ("verified", report["log_length"])
    lines = call(f"signing-key list --store {example.store}").out.splitlines()
    assert sorted(lines) == sorted([f"{old_key}  verifies", f"{new_key}  signs"])


def test_step_keys_are_rotated_separately(call, example):
    simulator_keys = call(f"signing-key list --store {example.store}").out
    rotation = call(f"signing-key rotate steps --store {example.store} --json")
    keys = json.loads(call(f"signing-key list steps --store {example.store} --json").out)
    assert [key for key in keys if key["signs"]] == [json.loads(rotation.out)]
    assert len(keys) == 2
    assert call(f"signing-key list --store {example.store}").out == simulator_keys


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("rotate", "there is no signer"), ("list steps", "holds no public key")],
)
def test_a_store_without_keys_is_refused_and_stays_empty(call, tmp_path, words, sentence):
    result = call(f"signing-key {words} --store {tmp_path}")
    assert result.code == 2
    assert sentence in result.error
    assert result.error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

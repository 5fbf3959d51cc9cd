import json

import pytest

from make import records


def signers(played) -> list[str]:
    """The ids of the keys that signed the run's log, in the order of its lengths."""
    envelopes = [
        envelope for _, envelope in sorted(played.ledger.logs.checkpoints(played.run).items())
    ]
    return [json.loads(envelope)["signatures"][0]["keyid"] for envelope in envelopes]


@pytest.mark.waits
def test_a_running_service_signs_with_a_rotated_key_and_its_run_verifies(call, played):
    (old,) = signers(played)
    new = call(f"signing-key rotate --store {played.store}").out.strip()
    told = json.loads(call(f"signing-key list --store {played.store} --json").out)
    assert {each["key"]: each["signs"] for each in told} == {old: False, new: True}
    call(f"run close {played.run} --weights {records.digest('final')} --url {played.url}")
    assert signers(played) == [old, new]
    verified = json.loads(call(f"run verify {played.run} --store {played.store} --json").out)
    assert (verified["grade"], verified["signed_length"]) == ("verified", verified["log_length"])
    lines = call(f"signing-key list --store {played.store}").out.splitlines()
    assert sorted(lines) == sorted([f"{old}  verifies", f"{new}  signs"])


def test_step_keys_are_rotated_separately(call, played):
    before = call(f"signing-key list --store {played.store}").out
    rotated = call(f"signing-key rotate steps --store {played.store} --json")
    told = json.loads(call(f"signing-key list steps --store {played.store} --json").out)
    assert [each for each in told if each["signs"]] == [json.loads(rotated.out)]
    assert len(told) == 2
    assert call(f"signing-key list --store {played.store}").out == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("rotate", "there is no signer"), ("list steps", "holds no public key")],
)
def test_a_store_without_keys_is_refused_and_stays_empty(call, tmp_path, words, sentence):
    done = call(f"signing-key {words} --store {tmp_path}")
    assert done.code == 2
    assert sentence in done.error
    assert done.error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

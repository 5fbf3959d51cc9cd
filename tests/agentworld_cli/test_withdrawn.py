"""An operator declares that a version was deleted on purpose."""

import json

import pytest

from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations import declarations, ledger
from make.story import Story, story, without


@pytest.fixture
def lost(tmp_path, monkeypatch) -> Story:
    """A story whose registry, in memory, no longer has its agent."""
    lost = without(story(tmp_path), "hero@1")
    for module in (declarations, ledger):
        monkeypatch.setattr(module, "open_sources", lambda _: lost.sources)
    return lost


@pytest.mark.compute
def test_audit_withdrawn_prints_lost_versions_and_declares_them_with_a_reason(call, lost):
    words = f"audit withdrawn --store {lost.store}"
    verify = f"audit verify --store {lost.store}"
    assert call(verify).code == 8
    artifact = lost.run.final_weights
    shown = call(words)
    assert shown.code == 0, shown.error
    first, last = shown.out.splitlines()
    assert first.startswith(f"hero@1 {artifact}, registered on 2")
    assert last == "nothing is recorded; add --reason TEXT to record it"
    assert call(verify).code == 8
    done = call(f"{words} --reason 'it was no good'")
    assert done.out == shown.out.replace(
        "nothing is recorded; add --reason TEXT to record it", "recorded"
    )
    assert call(words).out == "the registry has all that was signed as registered\n"
    assert call(verify).code == 0


@pytest.mark.compute
def test_audit_withdrawn_declares_only_the_named_versions(call, tmp_path, monkeypatch):
    told = story(tmp_path)
    empty = told.sources._replace(registry=MemoryRegistry())
    monkeypatch.setattr(declarations, "open_sources", lambda _: empty)
    words = f"audit withdrawn --store {told.store} --reason 'it was no good'"
    done = call(words)
    assert (done.code, done.error.count("\n")) == (2, 1)
    assert "the registry has none of 2 registered versions" in done.error
    assert call(f"{words} hero@2").code == 2
    named = call(f"{words} hero@1")
    assert (named.code, named.out.count("\n")) == (0, 2)
    assert "world@1 sha256:" in call(f"audit withdrawn --store {told.store} world@1").out
    assert call(f"{words} hero@1").code == 2


def test_audit_withdrawn_prints_lost_versions_as_json(call, lost):
    done = call(f"audit withdrawn --json --store {lost.store}")
    (told,) = json.loads(done.out)["versions"]
    assert (told["registered_as"], told["version"]) == ("hero", 1)


def test_a_reason_that_is_too_long_is_refused(call, lost):
    done = call(f"audit withdrawn --reason {'x' * 1025} --store {lost.store}")
    assert (done.code, done.out, done.error.count("\n")) == (2, "", 1)
    assert call(f"audit verify --store {lost.store}").code == 8

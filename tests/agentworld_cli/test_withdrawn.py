"""An operator declares that a version was deleted on purpose."""

import json

import pytest

from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations import declarations, ledger
from make.story import Story, story, without


@pytest.fixture
def history(tmp_path, monkeypatch) -> Story:
    """A story whose registry, in memory, no longer has its agent."""
    history = without(story(tmp_path), "hero@1")
    for module in (declarations, ledger):
        monkeypatch.setattr(module, "open_sources", lambda _: history.sources)
    return history


@pytest.mark.compute
def test_audit_withdrawn_prints_lost_versions_and_declares_them_with_a_reason(call, history):
    words = f"audit withdrawn --store {history.store}"
    verify = f"audit verify --store {history.store}"
    assert call(verify).code == 8
    artifact = history.run.final_weights
    result = call(words)
    assert result.code == 0, result.error
    first, last = result.out.splitlines()
    assert first.startswith(f"hero@1 {artifact}, registered on 2")
    assert last == "nothing is recorded; add --reason TEXT to record it"
    assert call(verify).code == 8
    output = call(f"{words} --reason 'it was no good'")
    assert output.out == result.out.replace(
        "nothing is recorded; add --reason TEXT to record it", "recorded"
    )
    assert call(words).out == "the registry has all that was signed as registered\n"
    assert call(verify).code == 0


@pytest.mark.compute
def test_audit_withdrawn_declares_only_the_named_versions(call, tmp_path, monkeypatch):
    history = story(tmp_path)
    empty_sources = history.sources._replace(registry=MemoryRegistry())
    monkeypatch.setattr(declarations, "open_sources", lambda _: empty_sources)
    words = f"audit withdrawn --store {history.store} --reason 'it was no good'"
    output = call(words)
    assert (output.code, output.error.count("\n")) == (2, 1)
    assert "the registry has none of 2 registered versions" in output.error
    assert call(f"{words} hero@2").code == 2
    result = call(f"{words} hero@1")
    assert (result.code, result.out.count("\n")) == (0, 2)
    assert "world@1 sha256:" in call(f"audit withdrawn --store {history.store} world@1").out
    assert call(f"{words} hero@1").code == 2


def test_audit_withdrawn_prints_lost_versions_as_json(call, history):
    result = call(f"audit withdrawn --json --store {history.store}")
    (version,) = json.loads(result.out)["versions"]
    assert (version["registered_as"], version["version"]) == ("hero", 1)


def test_a_reason_that_is_too_long_is_refused(call, history):
    result = call(f"audit withdrawn --reason {'x' * 1025} --store {history.store}")
    assert (result.code, result.out, result.error.count("\n")) == (2, "", 1)
    assert call(f"audit verify --store {history.store}").code == 8

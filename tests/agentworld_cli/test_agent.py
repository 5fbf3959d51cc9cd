"""Agents in use, as a person asks for them."""

import json
import re

import pytest

import make.agent
import make.registry
from agentworld.signing.keys import SIMULATOR_KEYS, current_key
from agentworld_cli.alias import user_name
from make import records

pytestmark = pytest.mark.waits


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make.agent.registered(tmp_path, make.registry.registry(tmp_path))


def test_a_moved_simulator_alias_marks_an_agent_for_revalidation_until_validated(call, made):
    store = f"--store {made.store}"
    used = call(f"alias set shell-agent@production shell-agent@1 --by ada --reason first {store}")
    assert used.out.startswith("shell-agent@production  shell-agent@1  since ")
    assert used.out.endswith(", set by ada: first\n")
    call(f"alias set stable {made.simulator.digest} {store}")
    following = records.pinned(made.store, context_tokens=512)
    moved = call(f"alias set stable {following.digest} {store}")
    assert moved.out.splitlines()[1:] == [
        f"revalidate shell-agent@1: it was trained in {made.simulator.digest}"
    ]
    listed = call(f"agent list {store}").out
    assert "revalidate" in listed
    assert f"shell-agent@1: stable moved from {made.simulator.digest}" in listed
    audited = call(f"audit agent shell-agent@1 {store}").out
    assert "in use as production" in audited
    assert re.search(
        r"shell-agent@1 sha256:\w{12}, registered \d{4}-\d\d-\d\d \d\d:\d\d UTC", audited
    )
    assert (
        "edge observed: the run's record is signed; the weights are the trainer's claim" in audited
    )
    key = current_key(made.store / "keys" / SIMULATOR_KEYS)
    assert re.search(rf"signed \d{{4}}-\d\d-\d\d \d\d:\d\d UTC by key {key[:12]}", audited)
    assert "revalidate: stable moved from" in audited
    made.validated(following.digest)
    (found,) = json.loads(call(f"agent list {store} --json").out)["agents"]
    assert (found["state"], found["in_use_as"]) == ("current", ["production"])


def test_agent_list_reports_an_alias_changed_in_the_registry(call, made):
    call(f"alias set shell-agent@production shell-agent@1 --store {made.store}")
    made.registry.remove_alias("shell-agent", "production")
    done = call(f"agent list --store {made.store}")
    assert "broken: shell-agent: mirror differs in alias production" in done.out
    assert done.code == 8
    assert (
        "what is in use, or what an alias points at, is not what was signed; its problems (1)"
        in done.error
    )
    as_json = call(f"agent list --store {made.store} --json")
    assert (as_json.code, len(json.loads(as_json.out)["problems"])) == (8, 1)
    ended = call(f"alias end shell-agent@production --store {made.store} --json")
    assert json.loads(ended.out)["ended"]
    whole = call(f"agent list --store {made.store} --json")
    assert (whole.code, json.loads(whole.out)["problems"]) == (0, [])


def test_an_alias_change_readable_only_by_auditors_is_reported_as_recorded(call, made, monkeypatch):
    monkeypatch.setattr("agentworld.operations.aliases.set_agent_alias", lambda *_: None)
    monkeypatch.setattr("agentworld.operations.aliases.end_alias", lambda *_: None)
    words = "shell-agent@production  recorded by the service, which shows its history to auditors"
    for command in ("set shell-agent@production shell-agent@1", "end shell-agent@production"):
        assert call(f"alias {command} --store {made.store}").out == f"{words} only\n"
        as_json = call(f"alias {command} --store {made.store} --json").out
        assert json.loads(as_json) == {"alias": "shell-agent@production"}


def test_an_agent_without_an_alias_has_no_state(call, made):
    def state():
        (found,) = json.loads(call(f"agent list --store {made.store} --json").out)["agents"]
        return found["state"]

    assert state() is None
    assert "current" not in call(f"agent list --store {made.store}").out
    call(f"alias set shell-agent@production shell-agent@1 --store {made.store}")
    assert state() == "current"


@pytest.mark.parametrize(
    "words", ["set shell-agent@Production shell-agent@1", "end shell-agent@Production"]
)
def test_an_invalid_agent_alias_is_refused(call, made, words):
    done = call(f"alias {words} --store {made.store}")
    assert (done.code, done.out) == (2, "")
    assert (
        "'shell-agent@Production' is not an alias of an agent; write NAME@ALIAS with" in done.error
    )


def test_an_agent_alias_refuses_a_gate(call, made):
    words = f"alias set shell-agent@production shell-agent@1 --store {made.store}"
    done = call(f"{words} --gate live_gain=0.1")
    assert (done.code, "which has no gate" in done.error) == (2, True)


def test_agent_and_simulator_aliases_are_listed_and_shown_alike(call, made):
    store = f"--store {made.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {made.simulator.digest} --by ada --reason first {store}")
    lines = call(f"alias list {store}").out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["shell-agent@production", "shell-agent@1"],
        ["stable", made.simulator.digest],
    ]
    assert lines[1].endswith(", set by ada: first")
    (simulator,) = json.loads(call(f"simulator list {store} --json").out)
    assert simulator["aliases"] == ["stable"]
    (shown,) = json.loads(call(f"alias show shell-agent@production {store} --json").out)
    assert (shown["kind"], shown["agent"]["version"]) == ("agent", 1)
    audited = call(f"audit alias shell-agent@production {store}")
    assert (audited.code, "+00:00: shell-agent@1\n" in audited.out) == (0, True)
    ended = call(f"alias end stable --by ada {store}").out
    assert ended.startswith("stable  nothing  since ")
    assert len(call(f"alias list {store}").out.splitlines()) == 1


def test_an_alias_change_names_the_current_user_by_default(call, made):
    used = call(f"alias set shell-agent@production shell-agent@1 --store {made.store} --json")
    assert json.loads(used.out)["set_by"] == user_name()


def test_an_unreadable_validation_is_reported_and_does_not_fail_an_alias_move(call, made):
    store = f"--store {made.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {made.simulator.digest} {store}")
    following = records.pinned(made.store, context_tokens=512)
    made.validated(following.digest)
    (report,) = made.store.glob("steps/validate/*/report.json")
    report.write_text("{ \x1b[2J")
    moved = call(f"alias set stable {following.digest} {store}")
    assert moved.code == 0, moved.error
    _, due, problem = moved.out.splitlines()
    assert due.startswith("revalidate shell-agent@1: ")
    assert problem.startswith("shell-agent@1: a live validation cannot be read (")
    assert "\x1b" not in moved.out
    call(f"alias set stable {made.simulator.digest} {store}")
    told = json.loads(call(f"alias set stable {following.digest} {store} --json").out)
    assert (told["revalidate"], told["problems"]) == (["shell-agent@1"], [problem])
    listed = call(f"agent list {store}")
    assert listed.code == 8  # the ledger has what its step signed, and the store another one
    assert "a live validation cannot be read" in " ".join(listed.out.split())


def test_alias_commands_escape_control_characters(call, made):
    nasty = "\x1b[2J [red]"
    made.signed(by=nasty, reason=nasty)
    alias = "shell-agent@production"
    for words in (f"alias set {alias} shell-agent@1", f"alias end {alias}"):
        done = call(f"{words} --store {made.store} --by {chr(39)}{nasty}{chr(39)}")
        assert done.code == 0, done.error
        assert "\\x1b[2J [red]" in done.out
        assert "\x1b" not in done.out


def test_alias_set_prints_the_agents_to_revalidate_as_json(call, made):
    store = f"--store {made.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {made.simulator.digest} {store}")
    following = records.pinned(made.store, context_tokens=512)
    told = json.loads(call(f"alias set stable {following.digest} {store} --json").out)
    assert (told["alias"], told["revalidate"]) == ("stable", ["shell-agent@1"])

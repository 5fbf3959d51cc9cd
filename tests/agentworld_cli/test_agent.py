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


def test_an_upgrade_from_the_move_of_the_name_to_the_validation(call, made):
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


def test_what_somebody_changed_in_the_registry_is_told_by_the_list(call, made):
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


def test_a_change_that_only_auditors_may_read_is_said_to_be_recorded(call, made, monkeypatch):
    monkeypatch.setattr("agentworld.operations.aliases.set_agent_alias", lambda *_: None)
    monkeypatch.setattr("agentworld.operations.aliases.end_alias", lambda *_: None)
    words = "shell-agent@production  recorded by the service, which shows its history to auditors"
    for command in ("set shell-agent@production shell-agent@1", "end shell-agent@production"):
        assert call(f"alias {command} --store {made.store}").out == f"{words} only\n"
        as_json = call(f"alias {command} --store {made.store} --json").out
        assert json.loads(as_json) == {"alias": "shell-agent@production"}


def test_an_agent_in_no_use_is_neither_current_nor_to_be_validated(call, made):
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
def test_a_name_that_cannot_be_used_is_told_as_that(call, made, words):
    done = call(f"alias {words} --store {made.store}")
    assert (done.code, done.out) == (2, "")
    assert (
        "'shell-agent@Production' is not an alias of an agent; write NAME@ALIAS with" in done.error
    )


def test_an_agents_alias_has_no_gate(call, made):
    words = f"alias set shell-agent@production shell-agent@1 --store {made.store}"
    done = call(f"{words} --gate live_gain=0.1")
    assert (done.code, "which has no gate" in done.error) == (2, True)


def test_the_aliases_of_both_kinds_are_listed_and_shown_alike(call, made):
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


def test_who_asks_is_told_where_nobody_else_is_named(call, made):
    used = call(f"alias set shell-agent@production shell-agent@1 --store {made.store} --json")
    assert json.loads(used.out)["set_by"] == user_name()


def test_a_garbled_validation_fails_no_move_of_a_name_and_is_told(call, made):
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


def test_words_of_others_do_nothing_to_who_looks(call, made):
    nasty = "\x1b[2J [red]"
    made.signed(by=nasty, reason=nasty)
    alias = "shell-agent@production"
    for words in (f"alias set {alias} shell-agent@1", f"alias end {alias}"):
        done = call(f"{words} --store {made.store} --by {chr(39)}{nasty}{chr(39)}")
        assert done.code == 0, done.error
        assert "\\x1b[2J [red]" in done.out
        assert "\x1b" not in done.out


def test_a_name_that_moves_tells_machines_too(call, made):
    store = f"--store {made.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {made.simulator.digest} {store}")
    following = records.pinned(made.store, context_tokens=512)
    told = json.loads(call(f"alias set stable {following.digest} {store} --json").out)
    assert (told["alias"], told["revalidate"]) == ("stable", ["shell-agent@1"])

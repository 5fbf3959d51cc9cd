"""Agents in use, by the commands of a user."""

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
def agent(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make.agent.registered(tmp_path, make.registry.registry(tmp_path))


def test_a_moved_simulator_alias_marks_an_agent_for_revalidation_until_validated(call, agent):
    store = f"--store {agent.store}"
    result = call(f"alias set shell-agent@production shell-agent@1 --by ada --reason first {store}")
    assert result.out.startswith("shell-agent@production  shell-agent@1  since ")
    assert result.out.endswith(", set by ada: first\n")
    call(f"alias set stable {agent.simulator.digest} {store}")
    next_simulator = records.pinned(agent.store, context_tokens=512)
    move_result = call(f"alias set stable {next_simulator.digest} {store}")
    assert move_result.out.splitlines()[1:] == [
        f"revalidate shell-agent@1: it was trained in {agent.simulator.digest}"
    ]
    listing = call(f"agent list {store}").out
    assert "revalidate" in listing
    assert f"shell-agent@1: stable moved from {agent.simulator.digest}" in listing
    audit = call(f"audit agent shell-agent@1 {store}").out
    assert "in use as production" in audit
    assert re.search(
        r"shell-agent@1 sha256:\w{12}, registered \d{4}-\d\d-\d\d \d\d:\d\d UTC", audit
    )
    assert "edge observed: the run's record is signed; the weights are the trainer's claim" in audit
    key = current_key(agent.store / "keys" / SIMULATOR_KEYS)
    assert re.search(rf"signed \d{{4}}-\d\d-\d\d \d\d:\d\d UTC by key {key[:12]}", audit)
    assert "revalidate: stable moved from" in audit
    agent.validated(next_simulator.digest)
    (entry,) = json.loads(call(f"agent list {store} --json").out)["agents"]
    assert (entry["state"], entry["in_use_as"]) == ("current", ["production"])


def test_agent_list_reports_an_alias_changed_in_the_registry(call, agent):
    call(f"alias set shell-agent@production shell-agent@1 --store {agent.store}")
    agent.registry.remove_alias("shell-agent", "production")
    result = call(f"agent list --store {agent.store}")
    assert "broken: shell-agent: mirror differs in alias production" in result.out
    assert result.code == 8
    assert (
        "what is in use, or what an alias points at, is not what was signed; its problems (1)"
        in result.error
    )
    as_json = call(f"agent list --store {agent.store} --json")
    assert (as_json.code, len(json.loads(as_json.out)["problems"])) == (8, 1)
    end_result = call(f"alias end shell-agent@production --store {agent.store} --json")
    assert json.loads(end_result.out)["ended"]
    list_result = call(f"agent list --store {agent.store} --json")
    assert (list_result.code, json.loads(list_result.out)["problems"]) == (0, [])


def test_an_alias_change_readable_only_by_auditors_is_reported_as_recorded(
    call, agent, monkeypatch
):
    monkeypatch.setattr("agentworld.operations.aliases.set_agent_alias", lambda *_: None)
    monkeypatch.setattr("agentworld.operations.aliases.end_alias", lambda *_: None)
    words = "shell-agent@production  recorded by the service, which shows its history to auditors"
    for command in ("set shell-agent@production shell-agent@1", "end shell-agent@production"):
        assert call(f"alias {command} --store {agent.store}").out == f"{words} only\n"
        as_json = call(f"alias {command} --store {agent.store} --json").out
        assert json.loads(as_json) == {"alias": "shell-agent@production"}


def test_an_agent_without_an_alias_has_no_state(call, agent):
    def state():
        (entry,) = json.loads(call(f"agent list --store {agent.store} --json").out)["agents"]
        return entry["state"]

    assert state() is None
    assert "current" not in call(f"agent list --store {agent.store}").out
    call(f"alias set shell-agent@production shell-agent@1 --store {agent.store}")
    assert state() == "current"


@pytest.mark.parametrize(
    "words", ["set shell-agent@Production shell-agent@1", "end shell-agent@Production"]
)
def test_an_invalid_agent_alias_is_refused(call, agent, words):
    result = call(f"alias {words} --store {agent.store}")
    assert (result.code, result.out) == (2, "")
    assert (
        "'shell-agent@Production' is not an alias of an agent; write NAME@ALIAS with"
        in result.error
    )


def test_an_agent_alias_refuses_a_gate(call, agent):
    words = f"alias set shell-agent@production shell-agent@1 --store {agent.store}"
    result = call(f"{words} --gate live_gain=0.1")
    assert (result.code, "which has no gate" in result.error) == (2, True)


def test_agent_and_simulator_aliases_are_listed_and_shown_alike(call, agent):
    store = f"--store {agent.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {agent.simulator.digest} --by ada --reason first {store}")
    lines = call(f"alias list {store}").out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["shell-agent@production", "shell-agent@1"],
        ["stable", agent.simulator.digest],
    ]
    assert lines[1].endswith(", set by ada: first")
    (simulator,) = json.loads(call(f"simulator list {store} --json").out)
    assert simulator["aliases"] == ["stable"]
    (entry,) = json.loads(call(f"alias show shell-agent@production {store} --json").out)
    assert (entry["kind"], entry["agent"]["version"]) == ("agent", 1)
    audit = call(f"audit alias shell-agent@production {store}")
    assert (audit.code, "+00:00: shell-agent@1\n" in audit.out) == (0, True)
    output = call(f"alias end stable --by ada {store}").out
    assert output.startswith("stable  nothing  since ")
    assert len(call(f"alias list {store}").out.splitlines()) == 1


def test_an_alias_change_names_the_current_user_by_default(call, agent):
    result = call(f"alias set shell-agent@production shell-agent@1 --store {agent.store} --json")
    assert json.loads(result.out)["set_by"] == user_name()


def test_an_unreadable_validation_is_reported_and_does_not_fail_an_alias_move(call, agent):
    store = f"--store {agent.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {agent.simulator.digest} {store}")
    next_simulator = records.pinned(agent.store, context_tokens=512)
    agent.validated(next_simulator.digest)
    (report,) = agent.store.glob("steps/validate/*/report.json")
    report.write_text("{ \x1b[2J")
    move_result = call(f"alias set stable {next_simulator.digest} {store}")
    assert move_result.code == 0, move_result.error
    _, revalidation, problem = move_result.out.splitlines()
    assert revalidation.startswith("revalidate shell-agent@1: ")
    assert problem.startswith("shell-agent@1: a live validation cannot be read (")
    assert "\x1b" not in move_result.out
    call(f"alias set stable {agent.simulator.digest} {store}")
    change = json.loads(call(f"alias set stable {next_simulator.digest} {store} --json").out)
    assert (change["revalidate"], change["problems"]) == (["shell-agent@1"], [problem])
    list_result = call(f"agent list {store}")
    assert list_result.code == 8  # the ledger has what its step signed, and the store another one
    assert "a live validation cannot be read" in " ".join(list_result.out.split())


def test_alias_commands_escape_control_characters(call, agent):
    nasty = "\x1b[2J [red]"
    agent.signed(by=nasty, reason=nasty)
    alias = "shell-agent@production"
    for words in (f"alias set {alias} shell-agent@1", f"alias end {alias}"):
        result = call(f"{words} --store {agent.store} --by {chr(39)}{nasty}{chr(39)}")
        assert result.code == 0, result.error
        assert "\\x1b[2J [red]" in result.out
        assert "\x1b" not in result.out


def test_alias_set_prints_the_agents_to_revalidate_as_json(call, agent):
    store = f"--store {agent.store}"
    call(f"alias set shell-agent@production shell-agent@1 {store}")
    call(f"alias set stable {agent.simulator.digest} {store}")
    next_simulator = records.pinned(agent.store, context_tokens=512)
    change = json.loads(call(f"alias set stable {next_simulator.digest} {store} --json").out)
    assert (change["alias"], change["revalidate"]) == ("stable", ["shell-agent@1"])

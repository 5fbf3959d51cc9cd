"""Records as of a past time."""

import sqlite3

import pytest

from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.dataset import audit_dataset
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.errors import NotFound
from make.story import DATA, story


def test_a_simulator_audit_at_a_time_leaves_out_later_records(tmp_path):
    history = story(tmp_path)
    audits = {
        moment: audit_simulator(history.simulator, history.at(moment)) for moment in history.moments
    }
    assert {moment: audit.world_model for moment, audit in audits.items()} == {
        "before": None,
        **dict.fromkeys(("a world", "a run", "weights", "an agent"), "world@1"),
    }
    assert {moment: len(audit.agents) for moment, audit in audits.items()} == {
        **dict.fromkeys(("before", "a world", "a run", "weights"), 0),
        "an agent": 1,
    }
    assert {moment: len(audit.other_runs) for moment, audit in audits.items()} == {
        "before": 0,
        "a world": 0,
        "a run": 1,
        "weights": 1,
        "an agent": 0,
    }


def test_a_run_is_shown_in_its_state_at_the_audited_time(tmp_path):
    history = story(tmp_path)
    runs = {
        moment: audit_simulator(history.simulator, history.at(moment)).other_runs[0]
        for moment in ("a run", "weights")
    }
    open_run, closed_run = runs["a run"], runs["weights"]
    assert (open_run.num_episodes, open_run.num_steps, open_run.closing) == (0, 0, None)
    assert open_run.log_length == 1
    assert closed_run == history.run


def test_an_audit_result_contains_its_time_unless_the_audit_is_current(tmp_path):
    history = story(tmp_path)
    moment = history.moments["an agent"].isoformat()
    assert audit_agent(history.agent, history.at("an agent")).at == moment
    assert audit_simulator(history.simulator, history.at("an agent")).at == moment
    assert audit_dataset(DATA, history.at("an agent")).at == moment
    assert audit_agent(history.agent, history.sources).at is None


def test_an_audit_at_the_latest_time_equals_the_current_audit(tmp_path):
    history = story(tmp_path)
    earlier_audit, current_audit = (
        audit_agent(history.agent, sources) for sources in (history.at("an agent"), history.sources)
    )
    assert earlier_audit.model_copy(update={"at": None}) == current_audit


def test_auditing_an_agent_before_its_registration_raises_an_error(tmp_path):
    history = story(tmp_path)
    with pytest.raises(NotFound, match="hero@1 was not registered by 20.*; name a later time"):
        audit_agent(history.agent, history.at("weights"))


def test_a_data_set_audit_has_only_uses_registered_by_the_audited_time(tmp_path):
    history = story(tmp_path)
    with pytest.raises(NotFound):
        audit_dataset(DATA, history.at("before"))
    assert audit_dataset(DATA, history.at("weights")).simulators[0].agents == ()


def test_an_alias_is_resolved_as_of_the_audited_time(tmp_path):
    history = story(tmp_path)
    history.sources.ledger.aliases.set("best", history.simulator, "me")
    assert audit_simulator("best", history.sources).simulator == history.simulator
    with pytest.raises(NotFound, match="no simulator sha256:best"):
        audit_simulator("best", history.at("an agent"))


def test_a_run_with_an_unreadable_log_is_shown_in_its_current_state(tmp_path):
    history = story(tmp_path)
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE log SET body = 'text'")
    audit = audit_simulator(history.simulator, history.at("a run"), verify=True)
    assert audit.other_runs == (history.run,)
    assert audit.evidence[history.run.id].grade == "broken"

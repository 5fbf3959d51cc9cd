"""Records as of a past time."""

import sqlite3

import pytest

from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.dataset import audit_dataset
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.errors import NotFound
from make.story import DATA, story


def test_a_simulator_audit_at_a_time_leaves_out_later_records(tmp_path):
    told = story(tmp_path)
    known = {moment: audit_simulator(told.simulator, told.at(moment)) for moment in told.moments}
    assert {moment: found.world_model for moment, found in known.items()} == {
        "before": None,
        **dict.fromkeys(("a world", "a run", "weights", "an agent"), "world@1"),
    }
    assert {moment: len(found.agents) for moment, found in known.items()} == {
        **dict.fromkeys(("before", "a world", "a run", "weights"), 0),
        "an agent": 1,
    }
    assert {moment: len(found.other_runs) for moment, found in known.items()} == {
        "before": 0,
        "a world": 0,
        "a run": 1,
        "weights": 1,
        "an agent": 0,
    }


def test_a_run_is_shown_in_its_state_at_the_audited_time(tmp_path):
    told = story(tmp_path)
    runs = {
        moment: audit_simulator(told.simulator, told.at(moment)).other_runs[0]
        for moment in ("a run", "weights")
    }
    begun, ended = runs["a run"], runs["weights"]
    assert (begun.num_episodes, begun.num_steps, begun.closing) == (0, 0, None)
    assert begun.log_length == 1
    assert ended == told.run


def test_an_audit_result_contains_its_time_unless_the_audit_is_current(tmp_path):
    told = story(tmp_path)
    moment = told.moments["an agent"].isoformat()
    assert audit_agent(told.agent, told.at("an agent")).at == moment
    assert audit_simulator(told.simulator, told.at("an agent")).at == moment
    assert audit_dataset(DATA, told.at("an agent")).at == moment
    assert audit_agent(told.agent, told.sources).at is None


def test_an_audit_at_the_latest_time_equals_the_current_audit(tmp_path):
    told = story(tmp_path)
    then, now = (audit_agent(told.agent, each) for each in (told.at("an agent"), told.sources))
    assert then.model_copy(update={"at": None}) == now


def test_auditing_an_agent_before_its_registration_raises_an_error(tmp_path):
    told = story(tmp_path)
    with pytest.raises(NotFound, match="hero@1 was not registered by 20.*; name a later time"):
        audit_agent(told.agent, told.at("weights"))


def test_a_data_set_audit_has_only_uses_registered_by_the_audited_time(tmp_path):
    told = story(tmp_path)
    with pytest.raises(NotFound):
        audit_dataset(DATA, told.at("before"))
    assert audit_dataset(DATA, told.at("weights")).simulators[0].agents == ()


def test_an_alias_is_resolved_as_of_the_audited_time(tmp_path):
    told = story(tmp_path)
    told.sources.ledger.aliases.set("best", told.simulator, "me")
    assert audit_simulator("best", told.sources).simulator == told.simulator
    with pytest.raises(NotFound, match="no simulator sha256:best"):
        audit_simulator("best", told.at("an agent"))


def test_a_run_with_an_unreadable_log_is_shown_in_its_current_state(tmp_path):
    told = story(tmp_path)
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE log SET body = 'text'")
    found = audit_simulator(told.simulator, told.at("a run"), verify=True)
    assert found.other_runs == (told.run,)
    assert found.evidence[told.run.id].grade == "broken"

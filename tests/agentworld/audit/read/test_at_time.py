"""Records as of a past time."""

import sqlite3

import pytest

from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.dataset import audit_dataset
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.errors import NotFound
from make.story import DATA, story


def test_what_came_later_is_left_out_of_a_simulators_answer(tmp_path):
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


def test_a_run_is_told_as_it_was(tmp_path):
    told = story(tmp_path)
    runs = {
        moment: audit_simulator(told.simulator, told.at(moment)).other_runs[0]
        for moment in ("a run", "weights")
    }
    begun, ended = runs["a run"], runs["weights"]
    assert (begun.num_episodes, begun.num_steps, begun.closing) == (0, 0, None)
    assert begun.log_length == 1
    assert ended == told.run


def test_an_answer_says_its_moment_and_one_about_now_says_none(tmp_path):
    told = story(tmp_path)
    moment = told.moments["an agent"].isoformat()
    assert audit_agent(told.agent, told.at("an agent")).at == moment
    assert audit_simulator(told.simulator, told.at("an agent")).at == moment
    assert audit_dataset(DATA, told.at("an agent")).at == moment
    assert audit_agent(told.agent, told.sources).at is None


def test_what_was_known_last_is_what_is_known_now(tmp_path):
    told = story(tmp_path)
    then, now = (audit_agent(told.agent, each) for each in (told.at("an agent"), told.sources))
    assert then.model_copy(update={"at": None}) == now


def test_an_agent_that_was_registered_later_was_not_there(tmp_path):
    told = story(tmp_path)
    with pytest.raises(NotFound, match="hero@1 was not registered by 20.*; name a later time"):
        audit_agent(told.agent, told.at("weights"))


def test_data_went_nowhere_before_a_version_that_read_it_was_registered(tmp_path):
    told = story(tmp_path)
    with pytest.raises(NotFound):
        audit_dataset(DATA, told.at("before"))
    assert audit_dataset(DATA, told.at("weights")).simulators[0].agents == ()


def test_an_alias_is_what_it_meant_then(tmp_path):
    told = story(tmp_path)
    told.sources.ledger.aliases.set("best", told.simulator, "me")
    assert audit_simulator("best", told.sources).simulator == told.simulator
    with pytest.raises(NotFound, match="no simulator sha256:best"):
        audit_simulator("best", told.at("an agent"))


def test_a_log_that_cannot_be_read_says_of_no_moment(tmp_path):
    told = story(tmp_path)
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE log SET body = 'text'")
    found = audit_simulator(told.simulator, told.at("a run"), verify=True)
    assert found.other_runs == (told.run,)
    assert found.evidence[told.run.id].grade == "broken"

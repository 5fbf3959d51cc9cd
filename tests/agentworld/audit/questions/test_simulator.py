"""A simulator's runs and agents, with other programs' entries in the registry."""

import pytest

from agentworld.audit.questions.dataset import audit_dataset
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.lineage.base import Agent
from agentworld.records.run import RunClosing, RunOpening
from make import records
from make.statement import registered
from make.story import DATA, STARTED, story, without
from make.strays import RegistryWithStrays


def test_an_unreadable_version_with_the_same_weights_is_not_the_world_model(tmp_path):
    registry = RegistryWithStrays()
    history = story(tmp_path, registry, signed=False)
    registry.stray(registry.world_model(history.world_model))
    assert audit_simulator(history.simulator, history.sources).world_model == "world@1"


def test_the_world_model_of_a_simulator_is_found_without_reading_its_record(tmp_path, monkeypatch):
    history = story(tmp_path)
    monkeypatch.delattr(type(history.sources.registry), "world_model")
    assert audit_simulator(history.simulator, history.sources).world_model == "world@1"


def test_an_unreadable_version_that_names_a_run_is_not_listed_as_an_agent(tmp_path):
    registry = RegistryWithStrays()
    history = story(tmp_path, registry)
    opening = RunOpening(agent="hero", starting_weights=STARTED)
    run = history.sources.ledger.open_run(opening, history.simulator)
    history.sources.ledger.close_run(run.id, RunClosing(final_weights=records.digest("no agent")))
    registry.stray(Agent(checkpoint=records.checkpoint("agent"), run=run.id))
    audit = audit_simulator(history.simulator, history.sources)
    assert [agent.agent for agent in audit.agents] == ["hero@1"]
    assert [other.id for other in audit.other_runs] == [run.id]
    (reader,) = audit_dataset(DATA, history.sources).simulators
    assert reader.agents == audit.agents


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("simulator", records.digest("other")),
        ("simulator", None),
        ("kind", None),
        ("run", "other"),
        ("edge", "garbled"),
    ],
)
def test_a_changed_tag_hides_no_signed_agent_beside_another_agent_of_its_run(tmp_path, tag, value):
    history = story(tmp_path)
    registry = history.sources.registry
    agent = registry.agent(history.agent)
    twin = registered("twin", agent, tmp_path / "agent", registry, tmp_path)
    registry.mark(twin, tag, value)
    agents = audit_simulator(history.simulator, history.sources).agents
    assert [agent.agent for agent in agents] == ["hero@1", "twin@1"]
    (reader,) = audit_dataset(DATA, history.sources).simulators
    assert reader.agents == agents


def test_a_signed_agent_that_the_registry_lost_is_not_listed(tmp_path):
    history = without(story(tmp_path), "hero@1")
    audit = audit_simulator(history.simulator, history.sources)
    assert (audit.agents, [run.id for run in audit.other_runs]) == ((), [history.run.id])


def test_an_agent_that_was_registered_later_is_not_listed_at_an_earlier_time(tmp_path):
    history = story(tmp_path)
    history.sources.registry.mark(history.agent, "simulator", None)
    names = {
        moment: [agent.agent for agent in audit_simulator(history.simulator, sources).agents]
        for moment, sources in ((name, history.at(name)) for name in ("weights", "an agent"))
    }
    assert names == {"weights": [], "an agent": ["hero@1"]}

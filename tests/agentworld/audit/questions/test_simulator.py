"""A simulator's runs and agents, with other programs' entries in the registry."""

from agentworld.audit.questions.dataset import audit_dataset
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.lineage.base import Agent
from agentworld.records.run import RunClosing, RunOpening
from make import records
from make.story import DATA, STARTED, story
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

from pathlib import Path
from typing import Any

import pytest

import make.ledger
from agentworld.audit.questions.difference import audit_diff
from agentworld.audit.read.sources import Sources
from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.run import RunClosing, RunOpening
from make import records
from make.story import moment


class Makers:
    """A registry and a ledger, with builders of agents."""

    def __init__(self, store: Path) -> None:
        self.store = store
        ledger = Ledger(make.ledger.laid(f"sqlite:///{store}/ledger.db"))
        self.sources = Sources(MemoryRegistry(), ledger, store)

    def world(self, name: str, data: str, **recipe: Any) -> str:
        """Registers a world model and pins its simulator; returns the simulator's digest."""
        stage = records.checkpoint(
            "cpt", artifact=records.digest(name), data=records.digest(data), recipe=recipe
        )
        world_model = WorldModel(stages=(stage,), report=records.digest("report"))
        self.sources.registry.register_world_model("world", world_model, self.store)
        return records.pinned(self.store, artifact=records.digest(name)).digest

    def agent(self, simulator: str, name: str = "agent", **recipe: Any) -> VersionRef:
        """Registers an agent that a run with this simulator made."""
        starting_weights = records.digest("started")
        ledger = self.sources.ledger
        run = ledger.open_run(RunOpening(agent="a", starting_weights=starting_weights), simulator)
        ledger.close_run(run.id, RunClosing(final_weights=records.digest(name)))
        checkpoint = records.checkpoint("agent", artifact=records.digest(name), recipe=recipe)
        agent = Agent(checkpoint=checkpoint, run=run.id)
        return self.sources.registry.register_agent("shell-agent", agent, self.store)


@pytest.fixture
def makers(tmp_path: Path) -> Makers:
    return Makers(tmp_path)


def find_differences(
    makers: Makers, first: VersionRef, second: VersionRef
) -> dict[str, tuple[Any, Any]]:
    audit = audit_diff(first, second, makers.sources)
    assert (audit.first, audit.second) == (str(first), str(second))
    return {
        difference.what: (difference.first, difference.second) for difference in audit.differences
    }


def test_an_agent_has_no_differences_from_itself(makers):
    agent = makers.agent(makers.world("w", "data"), lr=1)
    assert find_differences(makers, agent, agent) == {}


def test_agents_from_the_same_inputs_differ_only_in_their_weights(makers):
    world = makers.world("w", "data")
    first, second = makers.agent(world, "one", lr=1), makers.agent(world, "two", lr=1)
    assert find_differences(makers, first, second) == {
        "agent.artifact": (records.digest("one"), records.digest("two"))
    }


def test_a_recipe_difference_contains_the_field_path_and_both_values(makers):
    world = makers.world("w", "data")
    first = makers.agent(world, rl={"steps": 10, "seed": 0})
    second = makers.agent(world, "two", rl={"steps": 20, "seed": 0, "clip": 0.2})
    differences = find_differences(makers, first, second)
    assert differences["agent.recipe.rl.steps"] == (10, 20)
    assert differences["agent.recipe.rl.clip"] == (None, 0.2)
    assert "agent.recipe.rl.seed" not in differences


def test_differences_are_listed_from_the_agent_through_the_world_model_to_the_data(makers):
    first = makers.agent(makers.world("w", "old data", epochs=1))
    second = makers.agent(makers.world("w2", "new data", epochs=2), "two", lr=1)
    differences = find_differences(makers, first, second)
    assert list(differences) == [
        "agent.artifact",
        "agent.recipe",
        "agent.recipe.lr",
        "simulator",
        "simulator.artifact",
        "world_model",
        "cpt.artifact",
        "cpt.recipe.epochs",
        "data",
    ]
    assert differences["world_model"] == ("world@1", "world@2")
    assert differences["data"] == (records.digest("old data"), records.digest("new data"))


def test_two_agents_are_compared_as_of_the_given_time(makers):
    stage = records.checkpoint("cpt", artifact=records.digest("w2"), data=records.digest("data"))
    simulator = records.pinned(makers.store, artifact=records.digest("w2")).digest
    agents = makers.agent(makers.world("w", "data")), makers.agent(simulator, "two")
    earlier_sources = makers.sources.as_of(moment())
    world_model = WorldModel(stages=(stage,), report=records.digest("report"))
    makers.sources.registry.register_world_model("later", world_model, makers.store)
    differences = {
        difference.what: difference
        for difference in audit_diff(*agents, earlier_sources).differences
    }
    assert (differences["world_model"].first, differences["world_model"].second) == (
        "world@1",
        None,
    )
    assert audit_diff(*agents, earlier_sources).at == earlier_sources.moment
    assert find_differences(makers, *agents)["world_model"] == ("world@1", "later@1")
    assert audit_diff(*agents, makers.sources).at is None
    third_agent = makers.agent(simulator, "three")
    with pytest.raises(NotFound, match="shell-agent@3 was not registered by"):
        audit_diff(agents[0], third_agent, earlier_sources)


def test_an_unregistered_agent_cannot_be_compared(makers):
    agent = makers.agent(makers.world("w", "data"))
    with pytest.raises(NotFound, match="there is no version 7 of shell-agent"):
        audit_diff(agent, VersionRef(name="shell-agent", version=7), makers.sources)

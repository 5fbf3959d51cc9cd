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
        """A registered world model and the simulator that is pinned of it; its digest."""
        stage = records.checkpoint(
            "cpt", artifact=records.digest(name), data=records.digest(data), recipe=recipe
        )
        told = WorldModel(stages=(stage,), report=records.digest("report"))
        self.sources.registry.register_world_model("world", told, self.store)
        return records.pinned(self.store, artifact=records.digest(name)).digest

    def agent(self, simulator: str, made: str = "agent", **recipe: Any) -> VersionRef:
        """A registered agent that a run with this simulator made."""
        started = records.digest("started")
        ledger = self.sources.ledger
        run = ledger.open_run(RunOpening(agent="a", starting_weights=started), simulator)
        ledger.close_run(run.id, RunClosing(final_weights=records.digest(made)))
        trained = records.checkpoint("agent", artifact=records.digest(made), recipe=recipe)
        told = Agent(checkpoint=trained, run=run.id)
        return self.sources.registry.register_agent("shell-agent", told, self.store)


@pytest.fixture
def makers(tmp_path: Path) -> Makers:
    return Makers(tmp_path)


def differing(makers: Makers, first: VersionRef, second: VersionRef) -> dict[str, tuple[Any, Any]]:
    told = audit_diff(first, second, makers.sources)
    assert (told.first, told.second) == (str(first), str(second))
    return {each.what: (each.first, each.second) for each in told.differences}


def test_an_agent_has_no_differences_from_itself(makers):
    agent = makers.agent(makers.world("w", "data"), lr=1)
    assert differing(makers, agent, agent) == {}


def test_agents_from_the_same_inputs_differ_only_in_their_weights(makers):
    world = makers.world("w", "data")
    first, second = makers.agent(world, "one", lr=1), makers.agent(world, "two", lr=1)
    assert differing(makers, first, second) == {
        "agent.artifact": (records.digest("one"), records.digest("two"))
    }


def test_a_recipe_difference_contains_the_field_path_and_both_values(makers):
    world = makers.world("w", "data")
    first = makers.agent(world, rl={"steps": 10, "seed": 0})
    second = makers.agent(world, "two", rl={"steps": 20, "seed": 0, "clip": 0.2})
    found = differing(makers, first, second)
    assert found["agent.recipe.rl.steps"] == (10, 20)
    assert found["agent.recipe.rl.clip"] == (None, 0.2)
    assert "agent.recipe.rl.seed" not in found


def test_differences_are_listed_from_the_agent_through_the_world_model_to_the_data(makers):
    first = makers.agent(makers.world("w", "old data", epochs=1))
    second = makers.agent(makers.world("w2", "new data", epochs=2), "two", lr=1)
    found = differing(makers, first, second)
    assert list(found) == [
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
    assert found["world_model"] == ("world@1", "world@2")
    assert found["data"] == (records.digest("old data"), records.digest("new data"))


def test_two_agents_are_compared_as_of_the_given_time(makers):
    stage = records.checkpoint("cpt", artifact=records.digest("w2"), data=records.digest("data"))
    simulator = records.pinned(makers.store, artifact=records.digest("w2")).digest
    agents = makers.agent(makers.world("w", "data")), makers.agent(simulator, "two")
    then = makers.sources.as_of(moment())
    told = WorldModel(stages=(stage,), report=records.digest("report"))
    makers.sources.registry.register_world_model("later", told, makers.store)
    found = {each.what: each for each in audit_diff(*agents, then).differences}
    assert (found["world_model"].first, found["world_model"].second) == ("world@1", None)
    assert audit_diff(*agents, then).at == then.moment
    assert differing(makers, *agents)["world_model"] == ("world@1", "later@1")
    assert audit_diff(*agents, makers.sources).at is None
    third = makers.agent(simulator, "three")
    with pytest.raises(NotFound, match="shell-agent@3 was not registered by"):
        audit_diff(agents[0], third, then)


def test_an_unregistered_agent_cannot_be_compared(makers):
    agent = makers.agent(makers.world("w", "data"))
    with pytest.raises(NotFound, match="there is no version 7 of shell-agent"):
        audit_diff(agent, VersionRef(name="shell-agent", version=7), makers.sources)

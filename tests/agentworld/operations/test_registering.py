"""The simulator's world model in a registration and a signed edge."""

import pytest

from agentworld.lineage.base import Agent, WorldModel
from agentworld.operations.attested import _data
from agentworld.operations.registering import register
from agentworld.storage.simulators import SimulatorStore
from make import records
from make.story import DATA, EARLY_DATA, Story, story
from make.strays import RegistryWithStrays


@pytest.fixture
def told(tmp_path) -> Story:
    return story(tmp_path, RegistryWithStrays())


def inputs(told: Story) -> tuple[str, ...]:
    """The inputs of an agent that is registered now."""
    registry, store = told.sources.registry, told.store
    checkpoint = records.checkpoint("agent", simulator=told.simulator)
    made = Agent(checkpoint=checkpoint, run=told.run.id)
    ref = register("second", made, store / "agent", registry, store, store)
    return registry.stored(ref).links.inputs


def test_an_agent_is_linked_to_the_readable_world_model_version(told):
    registry = told.sources.registry
    registry.stray(registry.world_model(told.world_model))
    assert inputs(told) == ("model of world@1",)


def test_an_untrusted_copy_is_neither_linked_nor_used_for_the_data(told):
    registry = told.sources.registry
    artifact = registry.world_model(told.world_model).artifact
    stage = records.checkpoint("rl", artifact=artifact, data=records.digest("another"))
    copy = WorldModel(stages=(stage,), report=records.digest("report"))
    registry.register_world_model("a-copy", copy, told.store)
    manifest = SimulatorStore(told.store).find(told.simulator).manifest
    assert _data(manifest, registry, told.store) == (EARLY_DATA, DATA)
    assert inputs(told) == ("model of world@1",)

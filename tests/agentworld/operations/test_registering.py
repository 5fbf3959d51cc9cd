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
def history(tmp_path) -> Story:
    return story(tmp_path, RegistryWithStrays())


def registered_inputs(history: Story) -> tuple[str, ...]:
    """Registers another agent; returns its inputs."""
    registry, store = history.sources.registry, history.store
    checkpoint = records.checkpoint("agent", simulator=history.simulator)
    agent = Agent(checkpoint=checkpoint, run=history.run.id)
    ref = register("second", agent, store / "agent", registry, store, store)
    return registry.stored(ref).links.inputs


def test_an_agent_is_linked_to_the_readable_world_model_version(history):
    registry = history.sources.registry
    registry.stray(registry.world_model(history.world_model))
    assert registered_inputs(history) == ("model of world@1",)


def test_an_untrusted_copy_is_neither_linked_nor_used_for_the_data(history):
    registry = history.sources.registry
    artifact = registry.world_model(history.world_model).artifact
    stage = records.checkpoint("rl", artifact=artifact, data=records.digest("another"))
    copy = WorldModel(stages=(stage,), report=records.digest("report"))
    registry.register_world_model("a-copy", copy, history.store)
    manifest = SimulatorStore(history.store).find(history.simulator).manifest
    assert _data(manifest, registry, history.store) == (EARLY_DATA, DATA)
    assert registered_inputs(history) == ("model of world@1",)

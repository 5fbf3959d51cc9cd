"""An agent in both worlds, with scripted responses."""

import httpx
import pytest

import make.many
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.fake import FakeEngine
from agentworld.evaluate.agent import Policy
from agentworld.evaluate.live import LiveWorld
from agentworld.ledger import Ledger
from agentworld.recipes import Recipe
from agentworld.records.progress import ignore_progress
from agentworld.records.simulator import Sampling
from make import records

pytestmark = pytest.mark.waits

WEIGHTS = records.digest("weights")


def tried(folder, says):
    """The results of an agent with this response in both worlds."""
    from agentworld.steps.validate import _Agent, _try, _Worlds

    app = make.many.app(folder, make.many.Catalogue())
    asked = SimulatorClient(
        "http://simulator",
        simulator=make.many.SECOND.digest,
        transport=httpx.ASGITransport(app, raise_app_exceptions=False),
    )
    agent = _Agent("imitated", WEIGHTS, Policy(FakeEngine(lambda _: says), Sampling(), WEIGHTS))
    chosen = Recipe(name="r", validation={"num_tasks": 2, "num_resamples": 10})
    worlds = _Worlds(asked, LiveWorld("shell"))
    return _try(agent, worlds, "shell", chosen, folder, ignore_progress)


def test_an_agent_is_validated_in_its_simulator_on_a_service_of_several(tmp_path):
    found = tried(tmp_path, "ls")
    assert {each.turns[0].observation for each in found.simulated} == {"second: ls\n[0] ~"}
    (run,) = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").runs()
    assert run.simulator == run.opening.simulator == make.many.SECOND.digest
    assert (run.opening.purpose, run.final_weights) == ("evaluation", WEIGHTS)


def test_a_live_episode_without_actions_fails_without_asyncio_warnings(tmp_path, caplog):
    found = tried(tmp_path, "")
    assert [each.success for each in found.live] == [False, False]
    assert [each for each in caplog.records if each.name == "asyncio"] == []


def test_the_base_is_the_starting_weights_of_the_agent(tmp_path):
    from agentworld.runner.folders import CHECKPOINT, SELECTED_SIMULATOR, SelectedSimulator
    from agentworld.steps.validate import _base

    world = records.pinned(tmp_path)
    SelectedSimulator(simulator=world.digest).write(tmp_path / "imitated" / SELECTED_SIMULATOR)
    parents = [world.manifest.artifact]
    records.checkpoint("imitation", parents=parents).write(tmp_path / "imitated" / CHECKPOINT)
    base = _base(tmp_path / "imitated", tmp_path)
    assert (base.digest, base.model) == (world.manifest.artifact, world.model)

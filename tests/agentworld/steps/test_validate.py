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


def try_agent(folder, answer):
    """The results of an agent with this response in both worlds."""
    from agentworld.steps.validate import _Agent, _try, _Worlds

    app = make.many.app(folder, make.many.Catalogue())
    client = SimulatorClient(
        "http://simulator",
        simulator=make.many.SECOND.digest,
        transport=httpx.ASGITransport(app, raise_app_exceptions=False),
    )
    agent = _Agent("imitated", WEIGHTS, Policy(FakeEngine(lambda _: answer), Sampling(), WEIGHTS))
    recipe = Recipe(name="r", validation={"num_tasks": 2, "num_resamples": 10})
    worlds = _Worlds(client, LiveWorld("shell"))
    return _try(agent, worlds, "shell", recipe, folder, ignore_progress)


def test_an_agent_is_validated_in_its_simulator_on_a_service_of_several(tmp_path):
    results = try_agent(tmp_path, "ls")
    assert {episode.turns[0].observation for episode in results.simulated} == {"second: ls\n[0] ~"}
    (run,) = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").runs()
    assert run.simulator == run.opening.simulator == make.many.SECOND.digest
    assert (run.opening.purpose, run.final_weights) == ("evaluation", WEIGHTS)


def test_a_live_episode_without_actions_fails_without_asyncio_warnings(tmp_path, caplog):
    results = try_agent(tmp_path, "")
    assert [episode.success for episode in results.live] == [False, False]
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_the_base_is_the_starting_weights_of_the_agent(tmp_path):
    from agentworld.runner.folders import CHECKPOINT, SELECTED_SIMULATOR, SelectedSimulator
    from agentworld.steps.validate import _base

    simulator = records.pinned(tmp_path)
    SelectedSimulator(simulator=simulator.digest).write(tmp_path / "imitated" / SELECTED_SIMULATOR)
    parents = [simulator.manifest.artifact]
    records.checkpoint("imitation", parents=parents).write(tmp_path / "imitated" / CHECKPOINT)
    base = _base(tmp_path / "imitated", tmp_path)
    assert (base.digest, base.model) == (simulator.manifest.artifact, simulator.model)

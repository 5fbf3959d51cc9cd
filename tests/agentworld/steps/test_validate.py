"""An agent that is tried in both worlds; what it says is no model's."""

import asyncio

import httpx
import pytest

import make
import make_many
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.fake import FakeEngine
from agentworld.evaluate.agent import Policy
from agentworld.evaluate.live import LiveWorld
from agentworld.ledger import Ledger
from agentworld.recipes import Recipe
from agentworld.records.progress import no_tick
from agentworld.records.simulator import Sampling

pytestmark = pytest.mark.slow


def test_an_agent_is_tried_in_its_own_simulator_of_a_service_of_many(tmp_path):
    from agentworld.steps.validate import _Agent, _try, _Worlds

    app = make_many.app(tmp_path, make_many.Catalogue())
    asked = SimulatorClient(
        "http://simulator",
        simulator=make_many.SECOND.digest,
        transport=httpx.ASGITransport(app, raise_app_exceptions=False),
    )
    weights = make.digest("weights")
    agent = _Agent("untrained", weights, Policy(FakeEngine(lambda _: "ls"), Sampling(), weights))
    chosen = Recipe(name="r", validation={"num_tasks": 2, "num_resamples": 10})
    live = LiveWorld()
    found = _try(agent, _Worlds(asked, live), chosen, tmp_path, no_tick)
    asyncio.run(live.close())
    assert {each.turns[0].observation for each in found.simulated} == {"second: ls\n[0] ~"}
    (run,) = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").runs()
    assert run.simulator == run.opening.simulator == make_many.SECOND.digest
    assert (run.opening.purpose, run.final_weights) == ("evaluation", weights)

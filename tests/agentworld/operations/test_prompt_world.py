"""An external endpoint and a prompt: which settings are pinned, and which are secret."""

import itertools

import pytest

from agentworld.errors import EngineError, InputError
from agentworld.operations.prompt_world import endpoint_at, prompt_world
from agentworld.recipes import Recipe
from agentworld.records.simulator import Endpoint
from agentworld.storage.simulators import SimulatorStore
from fakes import endpoint
from make import records

KEY = "a key that nobody may find"
SHELL = "You simulate a Linux shell."


def pin(url, store, **sampling):
    world = {"sampling": {"max_tokens": 40, **sampling}, "domains": {"shell": SHELL}}
    recipe = Recipe(name="r", simulate=world)
    return prompt_world(recipe, store, endpoint_at(url, "somebody/model"))


def test_an_endpoint_and_a_prompt_become_a_simulator_without_weights(tmp_path):
    with endpoint.running(lambda _request: "~") as server:
        simulator = pin(server.url + "/v1/", tmp_path)
    manifest = simulator.manifest
    assert (manifest.artifact, manifest.files) == (None, {})
    assert manifest.engine == Endpoint(url=server.url, model="somebody/model")
    assert manifest.domains == records.pinned_domains(system_prompt=SHELL)
    assert simulator.reports == []
    ((_, body),) = server.requests
    assert (body["model"], body["messages"][0]["content"]) == ("somebody/model", SHELL)


def test_an_endpoints_api_key_is_sent_but_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_API_KEY", KEY)
    with endpoint.running(lambda _request: "~") as server:
        pin(server.url, tmp_path)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_refusal_by_the_endpoint_creates_no_simulator(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_API_KEY", KEY)
    with (
        endpoint.running(lambda _request: 401) as server,
        pytest.raises(EngineError, match="status 401") as error,
    ):
        pin(server.url, tmp_path)
    assert KEY not in str(error.value)
    assert SimulatorStore(tmp_path).all() == []


@pytest.mark.compute
def test_an_endpoint_that_ignores_seeds_cannot_be_pinned_as_seeded(tmp_path):
    counter = itertools.count()
    sampling = {"temperature": 1.0, "seed_policy": "seeded"}
    with endpoint.running(lambda _request: str(next(counter))) as server:
        with pytest.raises(InputError, match="equal seeds do not give equal bytes here"):
            pin(server.url, tmp_path, **sampling)
        assert SimulatorStore(tmp_path).all() == []
    with endpoint.running(lambda request: str(request.body.get("seed"))) as server:
        assert pin(server.url, tmp_path, **sampling).manifest.sampling.seed_policy == "seeded"


@pytest.mark.parametrize("url", ["http://me:hidden@there", "http://there?key=hidden", "there"])
def test_an_invalid_endpoint_url_is_refused_without_showing_its_secret(url):
    with pytest.raises(InputError, match="are not an endpoint; give https://HOST") as error:
        endpoint_at(url, "m")
    assert "hidden" not in str(error.value)
    assert error.value.__cause__ is None

"""The whole simulator on this machine, with the real `transformers serve`."""

import asyncio
import shutil
import socket
from pathlib import Path

import httpx
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.engine.accelerators import UNKNOWN, of_this_machine
from agentworld.engine.process import free_port
from agentworld.errors import InputError, SimulatorError
from agentworld.ledger import Ledger
from agentworld.pinning.manifest import pin, pin_endpoint
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.run import RunOpening
from agentworld.records.simulator import Endpoint, Sampling
from agentworld.serving.local import ListenOptions, serve_simulator
from agentworld.storage.stores import Stores
from fakes import endpoint
from machines.processes import processes_with
from make import records
from make.weights import weights
from waiting import wait_for

ENGINE = EngineRecipe(kind="transformers-serve", cache_blocks=128, batch_tokens=256)
OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))


def pin_model(folder, tmp_path) -> Path:
    """Pins a folder; returns the manifest's file."""
    recipe = SimulateRecipe(sampling=Sampling(max_tokens=40), domains={"shell": None})
    lock = records.digest("constraints")
    manifest = pin(ArtifactManifest.of(folder), recipe, ENGINE, lock=lock, context_tokens=512)
    manifest.write(tmp_path / "manifest.json")
    return tmp_path / "manifest.json"


async def play(url, attempts=5):
    """Plays a run of many short episodes; returns it, its observations and kinds of failures."""
    client = SimulatorClient(url, attempts=attempts)
    await client.open_run(OPENING)
    assert (await client.manifest()).digest == client.simulator

    async def play_one(number):
        episode = await client.reset(records.task())
        try:
            return (await client.step(episode, f"echo {number} > a{number * 7}")).observation
        except SimulatorError as error:
            return error.kind

    results = await asyncio.gather(*(play_one(number) for number in range(10)))
    run = await client.close_run(records.digest("final"))
    await client.close()
    return run, results


@pytest.mark.waits
def test_a_pinned_simulator_serves_a_run_and_records_the_run_in_the_ledger(tiny_model, tmp_path):
    manifest, logs, stores = pin_model(tiny_model, tmp_path), tmp_path / "logs", Stores.of(tmp_path)
    with serve_simulator(manifest, tiny_model, ENGINE, stores, logs) as simulator:
        run, results = asyncio.run(play(simulator.url))
    observations = [text for text in results if text not in ("cut-off", "unparsable")]
    assert observations
    ledger = Ledger(stores.ledger_url)
    assert ledger.run(run.id) == run
    assert (run.num_episodes, run.num_steps) == (10, len(observations))
    assert ledger.runs(final_weights=records.digest("final")) == [run]
    ledger.close()
    assert accelerators(stores, run) == {(of_this_machine(),)}
    assert (logs / "engine.log").stat().st_size > 0


def accelerators(stores, run):
    """The accelerators in the openings of a run's episodes."""
    ledger = Ledger(stores.ledger_url)
    devices = {episode.opening.accelerators for episode in ledger.episodes(run.id)}
    ledger.close()
    return devices


def engine_process():
    """The engine that this process started last."""
    processes = processes_with("agentworld.engine.transformers_server")
    return processes[0] if processes else None


@pytest.mark.waits
def test_a_killed_engine_is_restarted_at_the_same_address(tiny_model, tmp_path):
    manifest, logs, stores = pin_model(tiny_model, tmp_path), tmp_path / "logs", Stores.of(tmp_path)
    with serve_simulator(manifest, tiny_model, ENGINE, stores, logs) as simulator:
        url, first = simulator.engine.url, engine_process()
        _, before = asyncio.run(play(simulator.url))
        first.kill()
        first.wait()
        assert "engine" in asyncio.run(play(simulator.url, attempts=1))[1]
        assert health(simulator.url) == "unhealthy"
        wait_for(lambda: asyncio.run(play(simulator.url))[1] == before)
        assert health(simulator.url) == "healthy"
        assert engine_process() != first
        assert httpx.get(f"{url}/health", trust_env=False).is_success


@pytest.mark.waits
def test_an_engine_with_changed_model_files_is_not_restarted(tiny_model, tmp_path):
    model = shutil.copytree(tiny_model, tmp_path / "model")
    manifest, logs, stores = pin_model(model, tmp_path), tmp_path / "logs", Stores.of(tmp_path)

    def work():
        with serve_simulator(manifest, model, ENGINE, stores, logs) as simulator:
            (model / "model.safetensors").write_bytes(b"others")
            engine_process().kill()
            simulator.wait()

    with pytest.raises(InputError, match=r"model\.safetensors does not match"):
        work()


def health(url):
    return httpx.get(f"{url}/health", trust_env=False).json()["status"]


@pytest.mark.waits
def test_a_simulator_pinned_to_an_endpoint_is_served_without_a_local_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_API_KEY", "a key")
    recipe = SimulateRecipe(domains={"shell": "You simulate a shell."})
    with endpoint.running(lambda query: f"saw {query.body['messages'][-1]['content']}") as server:
        manifest = pin_endpoint(Endpoint(url=server.url, model="m"), recipe)
        manifest.write(tmp_path / "manifest.json")
        port = free_port()
        service = serve_simulator(
            *(tmp_path / "manifest.json", tmp_path / "none", ENGINE),
            *(Stores.of(tmp_path), tmp_path / "logs", ListenOptions(port=port)),
        )
        with service as simulator:
            assert simulator.url == f"http://127.0.0.1:{port}"
            run, results = asyncio.run(play(simulator.url))
            assert health(simulator.url) == "healthy"
    assert accelerators(Stores.of(tmp_path), run) == {UNKNOWN}
    assert sorted(results) == sorted(f"saw echo {n} > a{n * 7}" for n in range(10))
    assert {query.headers["authorization"] for query in server.requests} == {"Bearer a key"}
    assert server.requests[0].body["messages"][0]["content"].startswith("You simulate a shell.")


@pytest.mark.parametrize(
    ("engine", "content", "problem"),
    [
        ({"cache_blocks": 64}, weights(), r"pins engine\.arguments"),
        ({}, weights("others"), r"model\.safetensors does not match"),
    ],
    ids=["another engine", "another file"],
)
def test_nothing_starts_when_engine_or_weights_differ_from_the_manifest(
    tmp_path, engine, content, problem
):
    folder, logs = tmp_path / "model", tmp_path / "logs"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights())
    manifest = pin_model(folder, tmp_path)
    (folder / "model.safetensors").write_bytes(content)
    recipe = ENGINE.model_copy(update=engine)
    with (
        pytest.raises(InputError, match=problem),
        serve_simulator(manifest, folder, recipe, Stores.of(tmp_path), logs),
    ):
        pass
    assert not logs.exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, r"access\.yaml is wrong: it cannot be read"), ("tenants: 7", "is wrong: tenants: ")],
    ids=["no file", "another file"],
)
def test_nothing_starts_with_a_missing_or_invalid_access_file(tmp_path, text, problem):
    path, logs = tmp_path / "access.yaml", tmp_path / "logs"
    if text:
        path.write_text(text)
    assert_refused(tmp_path, logs, ListenOptions(str(path)), problem)


def test_nothing_starts_when_the_port_is_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        options = ListenOptions(port=port)
        assert_refused(tmp_path, tmp_path / "logs", options, f"port {port} is not available")


def assert_refused(tmp_path, logs, options, problem):
    recipe = SimulateRecipe(domains={"shell": "You simulate a shell."})
    manifest = pin_endpoint(Endpoint(url="http://127.0.0.1:9", model="m"), recipe)
    manifest.write(tmp_path / "manifest.json")
    service = serve_simulator(
        tmp_path / "manifest.json", tmp_path, ENGINE, Stores.of(tmp_path), logs, options
    )
    with pytest.raises(InputError, match=problem), service:
        pass
    assert not logs.exists()


def test_a_relative_access_path_is_resolved_to_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ListenOptions("access.yaml").resolved_access == str(tmp_path / "access.yaml")
    assert ListenOptions().resolved_access == "local"

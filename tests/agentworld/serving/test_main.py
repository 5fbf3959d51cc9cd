"""The service as a separate process, whose engine is an HTTP server of this process."""

import asyncio
import itertools
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import agentworld
import make.access
import make.service
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.process import free_port, running
from agentworld.errors import EngineError, InputError
from agentworld.ledger import Ledger
from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.run import RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving import main
from agentworld.serving.housekeeping import repeating
from agentworld.serving.main import ServiceSettings, serve
from fakes import endpoint
from make import records
from make.weights import weights
from waiting import wait_for

OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))
TASK = records.task(turn_limit=50)


class Engine(BaseHTTPRequestHandler):
    """Counts its responses, so that no two of them are equal."""

    num_requests = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Engine.num_requests += 1
        answer = {
            "id": self.headers["X-Request-Id"],
            "model": "m",
            "choices": [
                {"message": {"content": f"{Engine.num_requests}\n[0] ~"}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *args):
        """Logs no requests."""


@pytest.fixture
def engine_url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights())
    files = {"model.safetensors": digest_bytes(weights())}
    artifact = ArtifactManifest(files=files).digest
    records.manifest(files=files, artifact=artifact).write(tmp_path / "manifest.json")
    return folder


def environment_of(folder, engine_url) -> dict[str, str]:
    return {
        "AGENTWORLD_MANIFEST": str(folder.parent / "manifest.json"),
        "AGENTWORLD_MODEL_FOLDER": str(folder),
        "AGENTWORLD_ENGINE_URLS": json.dumps([engine_url]),
        "AGENTWORLD_ENGINE_MODEL": "m",
        "AGENTWORLD_LEDGER_URL": f"sqlite:///{folder.parent / 'ledger.db'}",
        "AGENTWORLD_OBJECTS_URL": str(folder.parent / "objects"),
        "AGENTWORLD_MIRROR_URL": str(folder.parent / "mirror"),
        "AGENTWORLD_ACCESS": "local",
        "AGENTWORLD_KEYS": str(folder.parent / "keys"),
    }


def service(folder, engine_url):
    port = free_port()
    environment = {
        **environment_of(folder, engine_url),
        "AGENTWORLD_PORT": str(port),
        "PYTHONPATH": str(Path(agentworld.__file__).parents[1]),
    }
    command = [sys.executable, "-m", "agentworld.serving.main"]
    return running("the service", command, environment, port, folder.parent / "service.log")


async def play(url, num_episodes, num_steps):
    """Plays episodes; returns the run, and the observations by episode."""
    client = SimulatorClient(url)
    run = await client.open_run(OPENING)
    episodes = [await client.reset(TASK) for _ in range(num_episodes)]

    async def play_one(episode):
        return [(await client.step(episode, "ls")).observation for _ in range(num_steps)]

    observations = await asyncio.gather(*(play_one(episode) for episode in episodes))
    await client.close()
    return run.id, dict(zip(episodes, observations, strict=True))


@pytest.mark.waits
def test_a_killed_service_loses_no_answered_step(folder, engine_url):
    answers = {}

    def work():
        with service(folder, engine_url) as server:
            server.wait_until_ready("/health", 120)
            run, observations = asyncio.run(play(server.url, num_episodes=8, num_steps=10))
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            answers.update(observations, run=run)

    with pytest.raises(EngineError, match="status -9"):
        work()
    run = answers.pop("run")
    ledger = Ledger(f"sqlite:///{folder.parent / 'ledger.db'}")
    for episode, expected in answers.items():
        stored = ledger.episode(episode)
        assert stored.intact
        assert [step.observation for step in stored.steps] == expected
    ledger.close()

    num_requests = Engine.num_requests
    with service(folder, engine_url) as server:
        server.wait_until_ready("/health", 120)
        first, observations = next(iter(answers.items()))
        repeated, next_observation = asyncio.run(resume(server.url, run, first))
    assert repeated == observations[-1]
    assert next_observation == f"{num_requests + 1}\n[0] ~"


async def resume(url, run, episode):
    """Sends step 10 again, and then step 11."""
    client = SimulatorClient(url)
    await client.resume_run(run)
    body = {"episode": episode, "action": "ls"}
    answers = [
        await client._connections.request("POST", "/steps", {**body, "step": step})
        for step in (10, 11)
    ]
    await client.close()
    return [answer.json()["observation"] for answer in answers]


@pytest.mark.waits
def test_a_service_refuses_a_model_folder_that_differs_from_the_manifest(folder, engine_url):
    (folder / "model.safetensors").write_bytes(weights("others"))

    def work():
        with service(folder, engine_url) as server:
            server.wait_until_ready("/health", 120)

    with pytest.raises(
        EngineError, match=r"status 2; .*\nerror: .*model\.safetensors does not match"
    ):
        work()


@pytest.mark.waits
def test_a_seeded_service_does_not_start_if_its_engine_ignores_seeds(folder):
    path = folder.parent / "manifest.json"
    manifest = SimulatorManifest.read(path)
    sampling = manifest.sampling.model_copy(update={"temperature": 1.0, "seed_policy": "seeded"})
    manifest.model_copy(update={"sampling": sampling}).write(path)

    counter = itertools.count()

    def work():
        with (
            endpoint.running(lambda _request: str(next(counter))) as engine,
            service(folder, engine.url) as server,
        ):
            server.wait_until_ready("/health", 120)

    with pytest.raises(EngineError, match=r"status 2; .*\nerror: equal seeds do not give equal"):
        work()


@pytest.fixture
def apps(folder, engine_url, monkeypatch):
    """The apps that `main` would serve, configured by the environment."""
    for name, value in environment_of(folder, engine_url).items():
        monkeypatch.setenv(name, value)
    served_apps = []
    monkeypatch.setattr(main, "listen", lambda app, *_: served_apps.append(app))
    return served_apps


@pytest.mark.waits
def test_environment_variables_set_the_idle_time_and_the_signing_interval(
    folder, apps, monkeypatch
):
    monkeypatch.setenv("AGENTWORLD_IDLE_SECONDS", "2")
    monkeypatch.setenv("AGENTWORLD_SEAL_SECONDS", "0.05")
    intervals = []

    def recorded(work, seconds):
        intervals.append(seconds)
        return repeating(work, seconds)

    monkeypatch.setattr("agentworld.serving.app.repeating", recorded)
    assert main.main() == 0
    ledger = Ledger(f"sqlite:///{folder.parent / 'ledger.db'}")
    with make.service.listening(apps[0]) as url:
        run, observations = asyncio.run(play(url, num_episodes=1, num_steps=1))
        (episode,) = observations
        wait_for(lambda: ledger.episode(episode).closed == "expired")
        wait_for(lambda: len(ledger.logs.entries(run)) in ledger.logs.checkpoints(run))
    assert 0.05 in intervals
    ledger.close()


@pytest.mark.parametrize("name", ["IDLE_SECONDS", "SEAL_SECONDS"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_an_invalid_interval_is_a_one_line_error(apps, monkeypatch, capsys, name, value):
    monkeypatch.setenv(f"AGENTWORLD_{name}", value)
    assert (main.main(), apps) == (2, [])
    error = capsys.readouterr().err
    assert f"error: the environment is wrong at {name.lower()}" in error
    assert error.count("\n") == 1


def test_a_missing_variable_is_named_without_printing_the_ledger_password(
    apps, monkeypatch, capsys
):
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", "postgresql://ada:secret@host/ledger")
    monkeypatch.delenv("AGENTWORLD_OBJECTS_URL")
    assert (main.main(), apps) == (2, [])
    error = capsys.readouterr().err
    assert error == "error: the environment is wrong at objects_url: Field required\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "simulator.example"])
def test_local_access_refuses_to_listen_on_a_non_loopback_host(
    folder, apps, monkeypatch, capsys, host
):
    monkeypatch.setenv("AGENTWORLD_HOST", host)
    assert (main.main(), apps) == (2, [])
    error = capsys.readouterr().err
    assert f"the host is {host}; name an access file, or listen on 127.0.0.1" in error
    assert error.count("\n") == 1
    monkeypatch.setenv("AGENTWORLD_ACCESS", str(make.access.access_file(folder.parent)))
    assert (main.main(), len(apps)) == (0, 1)


def test_a_service_without_an_access_setting_does_not_start(apps, monkeypatch, capsys):
    for access in ("", None):
        if access is None:
            monkeypatch.delenv("AGENTWORLD_ACCESS")
        else:
            monkeypatch.setenv("AGENTWORLD_ACCESS", access)
        assert (main.main(), apps) == (2, [])
        assert "wrong at access: Field required" in capsys.readouterr().err


def test_a_missing_access_file_is_a_one_line_error(folder, apps, monkeypatch, capsys):
    monkeypatch.setenv("AGENTWORLD_ACCESS", str(folder / "gone.yaml"))
    assert (main.main(), apps) == (2, [])
    error = capsys.readouterr().err
    assert "gone.yaml is wrong: it cannot be read" in error
    assert error.count("\n") == 1


def test_replicas_with_the_same_keys_accept_each_others_run_tokens(apps):
    assert (main.main(), main.main()) == (0, 0)
    first, second = (app.state.app_state.access for app in apps)
    token = first.run_token("0" * 32, "local")
    assert asyncio.run(second.caller(token)).run == "0" * 32


def test_a_service_without_an_engine_names_the_missing_variables(folder):
    settings = ServiceSettings(
        manifest=folder.parent / "manifest.json",
        ledger_url="sqlite://",
        objects_url="",
        mirror_url="",
        keys=folder,
        access="local",
    )
    with pytest.raises(InputError, match="set AGENTWORLD_MODEL_FOLDER, AGENTWORLD_ENGINE_URLS"):
        serve(settings)


@pytest.mark.parametrize("is_manifest", [True, False])
def test_a_service_requires_either_a_manifest_or_a_namespace(
    apps, monkeypatch, capsys, is_manifest
):
    if is_manifest:
        monkeypatch.setenv("AGENTWORLD_NAMESPACE", "worlds")
    else:
        monkeypatch.delenv("AGENTWORLD_MANIFEST")
    assert (main.main(), apps) == (2, [])
    text = capsys.readouterr().err
    assert "set either AGENTWORLD_MANIFEST, to serve one simulator, or AGENTWORLD_NAMESPACE" in text
    assert text.count("\n") == 1


def test_engine_urls_that_are_not_json_are_a_one_line_error_without_secrets(
    apps, monkeypatch, capsys
):
    monkeypatch.setenv("AGENTWORLD_ENGINE_URLS", "http://ada:secret@host")
    assert (main.main(), apps) == (2, [])
    error = capsys.readouterr().err
    assert error.startswith("error: the environment is wrong: ")
    assert "engine_urls" in error
    assert (error.count("\n"), "secret" in error) == (1, False)

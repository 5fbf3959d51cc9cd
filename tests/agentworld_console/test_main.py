import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

import make.access
import make.console
from agentworld.engine.process import free_port
from waiting import DEADLINE, wait_for

CONSOLE = [sys.executable, "-m", "agentworld_console.main"]


def environment(store=None, **settings):
    variables = {
        f"AGENTWORLD_CONSOLE_{name.upper()}": str(value) for name, value in settings.items()
    }
    if store:
        variables["AGENTWORLD_CONSOLE_STORE"] = str(store)
    # The registry is an empty file.
    variables["MLFLOW_TRACKING_URI"] = f"sqlite:///{store}/mlflow.db"
    return {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}


@contextmanager
def running(command, env):
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def get_status(url, name=""):
    headers = {"authorization": make.access.bearer(name)} if name else {}
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        ({}, "CONSOLE_STORE|store"),
        ({"store": "empty", "access": "local", "port": "x"}, "port"),
        ({"store": "empty"}, "the console has no access control yet"),
        ({"store": "empty", "access": "local", "host": "0.0.0.0"}, "listen on 127.0.0.1"),
        ({"store": "empty", "proxy_secret": "hunter2"}, "at least 32"),
        ({"store": "empty", "access": "local"}, "holds no ledger.db"),
    ],
)
@pytest.mark.waits
def test_a_wrong_environment_prints_one_line_without_secrets(settings, messages, tmp_path):
    env = environment(**{**settings, **({"store": tmp_path} if "store" in settings else {})})
    result = subprocess.run(
        CONSOLE, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert any(message in result.stderr for message in messages.split("|"))
    assert "hunter2" not in result.stderr


@pytest.mark.waits
def test_the_process_serves_known_keys_and_stops_on_sigterm(tmp_path):
    history, port = make.console.library(tmp_path), free_port()
    access = make.access.access_file(tmp_path)
    url = f"http://127.0.0.1:{port}"
    with running(CONSOLE, environment(tmp_path, access=access, port=port)) as process:
        wait_for(lambda: get_status(f"{url}/healthz") == 200)
        run = f"{url}/runs/{history.run}"
        assert get_status(run) == 401
        assert get_status(run, "acme-agent") == 200
        assert get_status(run, "rival-agent") == 404
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode in (0, -signal.SIGTERM)
    assert stderr == ""


@pytest.mark.waits
def test_the_command_prints_its_address(tmp_path):
    make.console.library(tmp_path)
    port = free_port()
    command = [sys.executable, "-m", "agentworld_cli.main", "console", "--store", str(tmp_path)]
    command += ["--port", str(port), "--access", "local"]
    with running(command, environment(tmp_path)) as process:
        wait_for(lambda: get_status(f"http://127.0.0.1:{port}/") == 200)
        assert f"answers at http://127.0.0.1:{port}" in process.stdout.readline()


@pytest.mark.waits
def test_the_command_reports_a_store_without_a_ledger_only_on_stderr(tmp_path):
    command = [sys.executable, "-m", "agentworld_cli.main", "console", "--access", "local"]
    command += ["--store", str(tmp_path), "--port", str(free_port())]
    env = environment(tmp_path)
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "holds no ledger.db" in result.stderr
    assert not [*tmp_path.iterdir()]

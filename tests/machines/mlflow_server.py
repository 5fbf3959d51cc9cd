"""A real MLflow server on loopback, and a proxy that fails on demand.

The server has workspaces: its own, or with Kubeflow's plugin the namespaces of a cluster, which
then authenticates tokens and authorizes accounts.
"""

import http.client
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import make.registry
from agentworld.engine.process import LOOPBACK, free_port
from waiting import wait_for

_OF_A_CLUSTER = ["--workspace-store-uri", "kubernetes://", "--app-name", "kubernetes-auth"]
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server")


class MlflowServer:
    """A process that can be killed and restarted; its data is kept in `folder`.

    With `kubeconfig`, a cluster's account, it belongs to that cluster.
    """

    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        self._folder = folder
        self._kubeconfig = kubeconfig
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        address = make.registry.database(self._folder)
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", LOOPBACK]
        command += ["--port", str(self.port), "--serve-artifacts", "--enable-workspaces"]
        command += ["--backend-store-uri", address]
        command += ["--artifacts-destination", str(self._folder / "artifacts")]
        settings = {
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }
        # The server refuses to start with a client's workspace setting.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")
        }
        if self._kubeconfig:
            command += _OF_A_CLUSTER
            settings["KUBECONFIG"] = str(self._kubeconfig)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=environment | settings,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Waits until it responds."""
        wait_for(self._responds)

    def _responds(self) -> bool:
        assert self._process
        assert self._process.poll() is None, (self._folder / "server.log").read_text()
        try:
            urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/health").close()
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def kill(self) -> None:
        assert self._process
        os.killpg(self._process.pid, 9)
        self._process.wait()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Kills the server, and restarts it after the block."""
        self.kill()
        try:
            yield
        finally:
            self.start()


@contextmanager
def serving(folder: Path, kubeconfig: Path | None = None) -> Iterator[MlflowServer]:
    """A server that responds."""
    server = MlflowServer(folder, kubeconfig)
    server.start()
    try:
        server.wait()
        yield server
    finally:
        server.kill()


def counted(url: str, artifact: str) -> dict[str, int]:
    """The numbers of an artifact's versions, runs, logged models, and values of each metric."""
    from mlflow import MlflowClient

    client, query = MlflowClient(url, url), f"tags.`agentworld.artifact` = '{artifact}'"
    experiment = client.get_experiment_by_name("agentworld").experiment_id
    runs = client.search_runs([experiment], query)
    run, metrics = runs[0].info.run_id, runs[0].data.metrics
    return {
        "versions": len(client.search_model_versions(query)),
        "runs": len(runs),
        "models": len(client.search_logged_models([experiment], query)),
        "values": max(len(client.get_metric_history(run, metric)) for metric in metrics),
    }


class Proxy:
    """A proxy in front of a server."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        """Methods and paths of requests."""
        self.status: Callable[[int], int] = lambda _number: 0
        """The status for a request, by its number, instead of the server's response; 0 forwards
        it.
        """
        self.loses: Callable[[int], bool] = lambda _number: False
        """Whether the response is lost after a request was processed."""


@contextmanager
def proxying(port: int) -> Iterator[Proxy]:
    """A proxy in front of a server's port, while the block runs."""
    state = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are separate writes

        def _meet(self) -> None:
            number = len(state.requests)
            state.requests.append(f"{self.command} {self.path.partition('?')[0]}")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            override = state.status(number)
            status, headers, answer = (
                (override, [], b"") if override else self._handed_on(body, dict(self.headers))
            )
            if state.loses(number):
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _meet  # noqa: N815

        def _handed_on(
            self, body: bytes, headers: dict[str, str]
        ) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(LOOPBACK, port)
            try:
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            except OSError:
                return 503, [], b""
            finally:
                connection.close()

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    state.url = f"http://{LOOPBACK}:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

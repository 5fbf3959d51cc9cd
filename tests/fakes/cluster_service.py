"""The service of a cluster as its chart starts it, with a scripted API server, and with engines at
one address of the test's.
"""

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import yaml

import make.access
from agentworld.access.secret import RUN_TOKENS, ensure_secret
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, TRUSTED, ensure_signer
from agentworld.storage.objects import ObjectStore
from fakes.api_server import kubeconfig
from machines.program import Program
from make.cluster import Cluster
from waiting import wait_for

NAMESPACE = "worlds"
_OBJECTS = f"/apis/agentworld.dev/v1alpha1/namespaces/{NAMESPACE}/"
# Names of a cluster cannot be resolved here: every engine is at the test's one address.
_NAMES = """
import os
from agentworld.cluster import names
host, _, port = os.environ["ENGINE"].rpartition(":")
names.engine_host = lambda simulator, namespace: host
names.ENGINE_PORT = int(port)
"""


class ClusterService:
    """One replica; after a kill and a restart, it has the same ledger, keys and port."""

    def __init__(self, folder: Path, kubeconfig: Path, engine_url: str, step_keys: Path):
        """`step_keys` are those of the store whose steps may close runs."""
        self.folder = folder
        keys, port = folder / "keys", free_port()
        ensure_signer(keys / SIMULATOR_KEYS)
        ensure_secret(keys / RUN_TOKENS)
        ensure_signer(step_keys)
        shutil.copytree(step_keys / TRUSTED, keys / STEP_KEYS / TRUSTED)
        (folder / "names").mkdir()
        (folder / "names/sitecustomize.py").write_text(_NAMES)
        self.url = f"http://{LOOPBACK}:{port}"
        self.stores = {
            "AGENTWORLD_LEDGER_URL": f"sqlite:///{folder / 'ledger.db'}",
            "AGENTWORLD_OBJECTS_URL": str(folder / "objects"),
            "AGENTWORLD_MIRROR_URL": str(folder / "mirror"),
        }
        self._environment = self.stores | {
            "AGENTWORLD_NAMESPACE": NAMESPACE,
            "AGENTWORLD_KUBECONFIG": str(kubeconfig),
            "AGENTWORLD_KEYS": str(keys),
            "AGENTWORLD_ACCESS": str(make.access.access_file(folder)),
            "AGENTWORLD_HOST": LOOPBACK,
            "AGENTWORLD_PORT": str(port),
            "ENGINE": engine_url.removeprefix("http://"),
            "PYTHONPATH": os.pathsep.join([str(folder / "names"), *sys.path]),
        }
        self._program = Program("the service", folder / "service.log")

    @property
    def ledger(self) -> Ledger:
        """The service's ledger."""
        objects = ObjectStore(self.stores["AGENTWORLD_OBJECTS_URL"])
        return Ledger(self.stores["AGENTWORLD_LEDGER_URL"], objects)

    def start(self) -> None:
        """Starts it, and waits until it responds."""
        command = [sys.executable, "-m", "agentworld.serving.main"]
        self._program.start(command, self._environment)
        wait_for(self._answers)

    @property
    def lives(self) -> int:
        """The number of starts."""
        return self._program.lives

    def kill(self) -> None:
        """Kills it at once."""
        self._program.kill()

    def _answers(self) -> bool:
        assert self._program.pid, (self.folder / "service.log").read_text()[-2_000:]
        try:
            return httpx.get(f"{self.url}/health", trust_env=False).is_success
        except httpx.TransportError:
            return False


@contextmanager
def api_server(folder: Path, cluster: Cluster) -> Iterator[Path]:
    """A kubeconfig of a server with this cluster's objects."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            response = cluster.read(self.path.removeprefix(_OBJECTS))
            self.send_response(200 if response else 404)
            self.end_headers()
            self.wfile.write(json.dumps(response or {}).encode())

        def log_message(self, *_arguments: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(f"http://{LOOPBACK}:{server.server_port}")))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()

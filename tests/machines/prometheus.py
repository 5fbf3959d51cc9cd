"""A real Prometheus server while a block runs, in a separate folder."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx

from agentworld.engine.process import LOOPBACK, free_port
from agentworld.engine.process import running as process_running
from waiting import DEADLINE

_SCRAPE_SECONDS = 0.1


class Server(NamedTuple):
    """A server that scrapes one target ten times a second."""

    url: str

    def values(self, query: str) -> list[float]:
        """The current values of a query, one for each series."""
        response = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False)
        body = response.json()
        assert body["status"] == "success", f"{query}: {body}"
        return [float(sample["value"][1]) for sample in body["data"]["result"]]


@contextmanager
def running(target: str, folder: Path) -> Iterator[Server]:
    """Starts a server that scrapes the path /metrics of an address, and ends it."""
    job = {"job_name": "agentworld", "static_configs": [{"targets": [urlsplit(target).netloc]}]}
    defaults = {"scrape_interval": f"{_SCRAPE_SECONDS * 1000:.0f}ms"}
    config = folder / "prometheus.yml"
    # JSON is YAML.
    config.write_text(json.dumps({"global": defaults, "scrape_configs": [job]}))
    port = free_port()
    command = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=warn",
    ]
    with process_running("Prometheus", command, {}, port, folder / "log") as server:
        server.wait_until_ready("/-/ready", DEADLINE)
        yield Server(server.url)


def program(name: str) -> str:
    """The path of Prometheus, or of its promtool."""
    folder = Path(sys.executable).parent
    path = shutil.which(name, path=f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert path, f"{name} is not installed; run `make monitor`"
    return path

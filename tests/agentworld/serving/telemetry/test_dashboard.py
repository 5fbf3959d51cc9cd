"""The shipped dashboard and alerts use existing metrics."""

import json
import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from agentworld.engine.process import LOOPBACK
from agentworld.records.usage import Usage
from agentworld.serving.telemetry.counts import Timings
from agentworld.serving.telemetry.metrics import Metrics
from machines import prometheus
from make import records
from waiting import wait_for

CHART = Path(__file__).parents[4] / "charts/agentworld"
DASHBOARD = json.loads((CHART / "dashboards/service.json").read_text())
ENGINES = json.loads((CHART / "dashboards/engines.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
GROUPS = yaml.safe_load((CHART / "alerts.yaml").read_text())["groups"]
[RULES] = [group["rules"] for group in GROUPS if group["name"] == "agentworld"]
ALERTS = [rule["expr"] for rule in RULES]
SIMULATOR = records.digest("simulator")
OF_THE_SERVER = {"instance", "job"}
"""Labels that Prometheus adds to what it scrapes."""


@pytest.fixture
def metrics() -> Metrics:
    states = {"http://one": "closed", "http://other": "open"}
    made = Metrics(lambda: {SIMULATOR: 3})
    made.serve(SIMULATOR, lambda: states)
    return made


@contextmanager
def exposed(metrics: Metrics) -> Iterator[str]:
    """The address of a server that answers each path with the metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            rendered = metrics.render(self.headers.get("accept", ""))
            self.send_response(200)
            self.send_header("content-type", rendered.content_type)
            self.end_headers()
            self.wfile.write(rendered.body)

        def log_message(self, *_arguments: object) -> None:
            """Says nothing of its requests."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def series(metrics: Metrics) -> list[tuple[str, dict[str, str]]]:
    text = metrics.render().body.decode()
    found = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return [(sample.name, sample.labels) for sample in found]


def selectors(query: str) -> list[tuple[str, str]]:
    """Each metric of a query, with its conditions as they are written."""
    return re.findall(r"(agentworld_\w+)(?:\{(.*?)\})?", query)


def meets(labels: dict[str, str], conditions: str) -> bool:
    """Whether a series is one of these, whatever Prometheus calls its instance."""
    for name, sign, wanted in re.findall(r'(\w+)(=~|!~|=)"(.*?)"', conditions):
        pattern = re.escape(wanted) if sign == "=" else wanted
        pattern = re.sub(r"\$\w+", ".*", pattern)  # whatever was chosen at the top
        is_one = re.fullmatch(pattern, labels.get(name, "")) is not None
        if name not in OF_THE_SERVER and (name not in labels or is_one == (sign == "!~")):
            return False
    return True


@pytest.mark.parametrize("query", [*QUERIES, *ALERTS])
def test_every_query_selects_existing_metric_series(metrics, query):
    assert selectors(query)
    for name, conditions in selectors(query):
        assert "!=" not in conditions
        assert any(name == told and meets(labels, conditions) for told, labels in series(metrics))


@pytest.mark.parametrize("query", [*QUERIES, *ALERTS])
def test_a_query_groups_by_labels_that_its_metrics_have(metrics, query):
    names = {name for name, _ in selectors(query)}
    known = {label for name, labels in series(metrics) if name in names for label in labels}
    groups = re.findall(r"\b(?:by|without|on|ignoring)\s*\((.*?)\)", query)
    wanted = {label.strip() for group in groups for label in group.split(",")}
    assert wanted - known - OF_THE_SERVER == set()


def test_the_dashboard_shows_every_metric_of_the_service(metrics):
    shown = {name for query in QUERIES for name, _ in selectors(query)}
    told = {re.sub(r"_(count|sum)$", "_bucket", name) for name, _ in series(metrics)}
    assert shown == told


@pytest.mark.parametrize("dashboard", [DASHBOARD, ENGINES], ids=["service", "engines"])
def test_panels_use_the_chosen_datasource_and_have_unique_ids_and_positions(
    dashboard,
):
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    panels = dashboard["panels"]
    assert all(panel["datasource"] == chosen for panel in panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
    squares = [square for panel in panels for square in covered(**panel["gridPos"])]
    assert len(set(squares)) == len(squares)


def covered(x: int, y: int, w: int, h: int) -> list[tuple[int, int]]:
    assert x + w <= 24  # as many columns has Grafana
    return [(column, row) for column in range(x, x + w) for row in range(y, y + h)]


@pytest.mark.waits
def test_a_real_prometheus_answers_every_panel(metrics, tmp_path):
    chosen = {"$instance": ".*", "$simulator": ".*", "$__rate_interval": "5s"}
    queries = [re.sub(r"\$\w+", lambda match: chosen[match[0]], query) for query in QUERIES]

    def answers(query: str) -> bool:
        metrics.of(SIMULATOR).count_step(
            "http", Timings(0.001, 0.2, 0.003, 0.204), Usage(220, 20, 10)
        )
        values = server.values(query)
        return bool(values) and all(map(math.isfinite, values))

    with exposed(metrics) as url, prometheus.running(url, tmp_path) as server:
        for query in queries:
            wait_for(lambda query=query: answers(query))
        rate = 'rate(agentworld_steps_total{protocol="http"}[5s])'
        wait_for(lambda: answers(rate) and server.values(rate)[0] > 0)

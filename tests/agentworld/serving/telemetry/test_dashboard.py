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
SERVER_LABELS = {"instance", "job"}
"""Labels that Prometheus adds to what it scrapes."""


@pytest.fixture
def metrics() -> Metrics:
    states = {"http://one": "closed", "http://other": "open"}
    new_metrics = Metrics(lambda: {SIMULATOR: 3})
    new_metrics.serve(SIMULATOR, lambda: states)
    return new_metrics


@contextmanager
def serve_metrics(metrics: Metrics) -> Iterator[str]:
    """The address of a server that answers each path with the metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            rendered = metrics.render(self.headers.get("accept", ""))
            self.send_response(200)
            self.send_header("content-type", rendered.content_type)
            self.end_headers()
            self.wfile.write(rendered.body)

        def log_message(self, *_arguments: object) -> None:
            """Logs no requests."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def series(metrics: Metrics) -> list[tuple[str, dict[str, str]]]:
    text = metrics.render().body.decode()
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return [(sample.name, sample.labels) for sample in samples]


def selectors(query: str) -> list[tuple[str, str]]:
    """Each metric of a query, with its conditions as they are written."""
    return re.findall(r"(agentworld_\w+)(?:\{(.*?)\})?", query)


def meets(labels: dict[str, str], conditions: str) -> bool:
    """Whether a series meets these conditions; the labels of the server are ignored."""
    for name, sign, value in re.findall(r'(\w+)(=~|!~|=)"(.*?)"', conditions):
        pattern = re.escape(value) if sign == "=" else value
        pattern = re.sub(r"\$\w+", ".*", pattern)  # a variable of the dashboard has any value
        is_match = re.fullmatch(pattern, labels.get(name, "")) is not None
        if name not in SERVER_LABELS and (name not in labels or is_match == (sign == "!~")):
            return False
    return True


@pytest.mark.parametrize("query", [*QUERIES, *ALERTS])
def test_every_query_selects_existing_metric_series(metrics, query):
    assert selectors(query)
    for name, conditions in selectors(query):
        assert "!=" not in conditions
        assert any(
            name == metric and meets(labels, conditions) for metric, labels in series(metrics)
        )


@pytest.mark.parametrize("query", [*QUERIES, *ALERTS])
def test_a_query_groups_by_labels_that_its_metrics_have(metrics, query):
    names = {name for name, _ in selectors(query)}
    available = {label for name, labels in series(metrics) if name in names for label in labels}
    groups = re.findall(r"\b(?:by|without|on|ignoring)\s*\((.*?)\)", query)
    used = {label.strip() for group in groups for label in group.split(",")}
    assert used - available - SERVER_LABELS == set()


def test_the_dashboard_shows_every_metric_of_the_service(metrics):
    queried = {name for query in QUERIES for name, _ in selectors(query)}
    exported = {re.sub(r"_(count|sum)$", "_bucket", name) for name, _ in series(metrics)}
    assert queried == exported


@pytest.mark.parametrize("dashboard", [DASHBOARD, ENGINES], ids=["service", "engines"])
def test_panels_use_the_chosen_datasource_and_have_unique_ids_and_positions(
    dashboard,
):
    datasource = {"type": "prometheus", "uid": "${datasource}"}
    panels = dashboard["panels"]
    assert all(panel["datasource"] == datasource for panel in panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [cell for panel in panels for cell in cells_of(**panel["gridPos"])]
    assert len(set(cells)) == len(cells)


def cells_of(x: int, y: int, w: int, h: int) -> list[tuple[int, int]]:
    assert x + w <= 24  # Grafana has 24 columns
    return [(column, row) for column in range(x, x + w) for row in range(y, y + h)]


@pytest.mark.waits
def test_a_real_prometheus_answers_every_panel(metrics, tmp_path):
    variables = {"$instance": ".*", "$simulator": ".*", "$__rate_interval": "5s"}
    queries = [re.sub(r"\$\w+", lambda match: variables[match[0]], query) for query in QUERIES]

    def has_answer(query: str) -> bool:
        metrics.of(SIMULATOR).count_step(
            "http", Timings(0.001, 0.2, 0.003, 0.204), Usage(220, 20, 10)
        )
        values = server.values(query)
        return bool(values) and all(map(math.isfinite, values))

    with serve_metrics(metrics) as url, prometheus.running(url, tmp_path) as server:
        for query in queries:
            wait_for(lambda query=query: has_answer(query))
        rate = 'rate(agentworld_steps_total{protocol="http"}[5s])'
        wait_for(lambda: has_answer(rate) and server.values(rate)[0] > 0)

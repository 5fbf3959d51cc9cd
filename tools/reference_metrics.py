"""The page of the reference about metrics, from what a service answers to a scrape."""

from collections.abc import Iterator

from prometheus_client.core import Metric
from reference_text import head, page, row

from agentworld.serving.telemetry.metrics import Metrics
from agentworld_operator.metrics import OperatorMetrics
from agentworld_operator.resources.kinds import KINDS
from agentworld_operator.work_queue import WorkQueue

_SIMULATOR = "sha256:" + "0" * 64
_SUFFIXES = {"counter": "_total", "info": "_info"}
_FREE = {"simulator", "engine", "version", "python"}
"""Labels whose values are not ours to list."""
_BOUND = "le"


def metrics() -> str:
    """A row for each metric of the service and of the operator."""
    service = Metrics(lambda: {_SIMULATOR: 1})
    service.serve(_SIMULATOR, lambda: {"http://engine:8000": "closed"})
    text = page(
        "Metrics",
        "The simulator service answers `GET /metrics` in Prometheus' format;"
        " [Metrics](../operate/metrics.md) sets up the scrape, a dashboard and alerts. The operator"
        " answers at a port of its own. The console exports no metrics, and the engines (vLLM)"
        " export their own.",
    )
    text += "\n" + head("metric", "type", "labels", "meaning")
    text += "".join(map(_row, service.collect()))
    operator = OperatorMetrics()
    operator.lead({kind.kind: WorkQueue(_work, workers=1) for kind in KINDS})
    text += "\n## Operator\n\n" + head("metric", "type", "labels", "meaning")
    return text + "".join(map(_row, operator.collect()))


async def _work(_name: str) -> None:
    """A queue counts from 0 before it has done anything."""


def _row(metric: Metric) -> str:
    name = metric.name + _SUFFIXES.get(metric.type, "")
    kind = "gauge" if metric.type == "info" else metric.type
    return row(f"`{name}`", kind, ", ".join(_labels(metric)), metric.documentation)


def _labels(metric: Metric) -> Iterator[str]:
    values: dict[str, dict[str, None]] = {}
    for sample in metric.samples:
        for label, value in sample.labels.items():
            values.setdefault(label, {})[value] = None
    for label, label_values in values.items():
        if label in _FREE:
            yield f"`{label}`"
        elif label != _BOUND:
            yield f"`{label}`: {', '.join(map('`{}`'.format, label_values))}"

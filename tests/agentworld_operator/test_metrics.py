"""An operator's metrics, and the alerts over them."""

import asyncio
import re
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from agentworld.errors import ClusterError
from agentworld_operator.metrics import OperatorMetrics
from agentworld_operator.work_queue import WorkQueue
from fakes.virtual_time import run

CHART = Path(__file__).parents[2] / "charts/agentworld"


def samples_in(text):
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def scrape(metrics):
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry).decode()


ROUNDS, DEPTH = "agentworld_operator_reconciles_total", "agentworld_operator_queue_depth"


def test_a_waiting_replica_exports_only_that_it_does_not_lead():
    assert samples_in(scrape(OperatorMetrics())) == {("agentworld_operator_leader",): 0}


def test_rounds_are_counted_by_result_and_the_queue_depth_is_exported():
    errors = {"good": None, "refused": ClusterError("no"), "broken": ValueError("ours")}

    async def begin():
        async def work(name):
            if errors[name]:
                raise errors[name]

        queue = WorkQueue(work, workers=1)
        metrics = OperatorMetrics()
        metrics.lead({"Simulator": queue})
        for name in errors:
            queue.add(name)
        before = samples_in(scrape(metrics))
        task = asyncio.create_task(queue.run())
        for _ in range(100):  # many more turns than three names take
            await asyncio.sleep(0)
        task.cancel()
        return before, samples_in(scrape(metrics))

    before, after = run(begin())
    assert before[DEPTH, "Simulator"] == 3
    assert before[ROUNDS, "Simulator", "ok"] == 0
    assert after == {
        ("agentworld_operator_leader",): 1,
        (DEPTH, "Simulator"): 0,
        (ROUNDS, "Simulator", "ok"): 1,
        (ROUNDS, "Simulator", "failed"): 1,
        (ROUNDS, "Simulator", "bug"): 1,
    }


def test_the_docs_and_the_alerts_cover_every_operator_metric():
    async def do_nothing(_name):
        return None

    metrics = OperatorMetrics()
    metrics.lead({"Simulator": WorkQueue(do_nothing, workers=1)})
    names = {name for name, *_ in samples_in(scrape(metrics))}
    page = (CHART.parents[1] / "docs/reference/metrics.md").read_text()
    assert set(re.findall(r"^\| `(agentworld_operator_\w+)`", page, re.M)) == names
    groups = yaml.safe_load((CHART / "alerts.yaml").read_text())["groups"]
    [rules] = [group["rules"] for group in groups if group["name"] == "agentworld-operator"]
    names_by_rule = [re.findall(r"agentworld_\w+", rule["expr"]) for rule in rules]
    assert {name for names_of_rule in names_by_rule for name in names_of_rule} == names

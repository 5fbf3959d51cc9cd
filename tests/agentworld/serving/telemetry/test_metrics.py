"""A service's metrics, as a Prometheus server reads them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agentworld.engine.breaker import State
from agentworld.errors import AccessFailure, EngineFailure, StoreError
from agentworld.records.usage import Usage
from agentworld.serving.telemetry.counts import Timings
from agentworld.serving.telemetry.metrics import Fault, Metrics, Refusal
from machines import prometheus
from make import records

DOCS = Path(__file__).parents[4] / "docs/reference/metrics.md"
STATES = {"http://one": "closed", "http://other": "open"}
SIMULATOR, OTHER = records.digest("simulator"), records.digest("other")
FREE = {"engine", "simulator", "version", "python", "le"}
"""Labels whose values are not listed."""
SHARED = {
    f"agentworld_{name}"
    for name in ("refusals_total", "faults_total", "build_info", "engine_state")
}
"""Metrics that are not per simulator, or have its engine's addresses."""


def build(open_episodes=lambda: {SIMULATOR: 3}, states=lambda: STATES) -> Metrics:
    """The metrics of a process that serves one simulator."""
    metrics = Metrics(open_episodes)
    metrics.serve(SIMULATOR, states)
    return metrics


def families(metrics: Metrics):
    return list(text_string_to_metric_families(metrics.render().body.decode()))


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """The value of each series, by its name and the values of its labels, except SIMULATOR."""
    return {
        (sample.name, *(value for value in sample.labels.values() if value != SIMULATOR)): (
            sample.value
        )
        for family in families(metrics)
        for sample in family.samples
    }


def count_everything(metrics: Metrics) -> None:
    """Counts one event of each kind."""
    counts = metrics.of(SIMULATOR)
    for protocol in ("http", "openenv", "openai", "mcp"):
        counts.count_step(protocol, Timings(0.001, 0.2, 0.003, 0.204), Usage(220, 20, 10))
    counts.begin()
    for reason in ("done", "limit", "closed", "expired"):
        counts.end(reason)
    for kind in (*get_args(Refusal), *get_args(Fault)):
        metrics.count_problem(kind)


def test_a_step_is_counted_by_protocol_phase_and_tokens():
    metrics = build()
    counts = metrics.of(SIMULATOR)
    counts.count_step("openenv", Timings(0.001, 0.2, 0.003, 0.204), Usage(220, 20, 10))
    counts.count_step("openenv", Timings(0.002, 0.3, 0.003, 0.305), Usage(100, 0, 5))
    values = samples(metrics)
    assert values["agentworld_steps_total", "openenv"] == 2
    assert values["agentworld_steps_total", "http"] == 0
    assert values["agentworld_step_duration_seconds_count", "engine"] == 2
    assert values["agentworld_step_duration_seconds_sum", "engine"] == pytest.approx(0.5)
    tokens = [values["agentworld_tokens_total", kind] for kind in ("input", "cached", "output")]
    assert tokens == [300, 20, 15]


def test_a_step_without_an_engine_request_adds_no_queue_or_engine_duration():
    metrics = build()
    metrics.of(SIMULATOR).count_step("http", Timings(ledger=0.003, total=0.004))
    values = samples(metrics)
    counts = [values["agentworld_step_duration_seconds_count", phase] for phase in Timings._fields]
    assert counts == [0, 0, 1, 1]


def test_a_bucket_counts_durations_up_to_and_including_its_bound():
    metrics = build()
    for seconds in (0.0, 0.1, 0.11, 9_999.0):
        metrics.of(SIMULATOR).count_step("http", Timings(total=seconds))
    values = samples(metrics)
    bounds = ("0.0001", "0.05", "0.1", "0.25", "120.0", "+Inf")
    counts = [values["agentworld_step_duration_seconds_bucket", bound, "total"] for bound in bounds]
    assert counts == [1, 1, 2, 3, 3, 4]


def test_episodes_are_counted_as_they_begin_and_end():
    metrics = build()
    metrics.of(SIMULATOR).begin()
    metrics.of(SIMULATOR).begin()
    metrics.of(SIMULATOR).end("expired", 2)
    values = samples(metrics)
    assert values["agentworld_episodes_opened_total",] == 2
    assert values["agentworld_episodes_ended_total", "expired"] == 2


def test_open_episodes_and_engine_states_are_read_at_each_scrape():
    states, numbers = dict(STATES), iter([1, 5])
    metrics = build(lambda: {SIMULATOR: next(numbers)}, lambda: states)
    assert samples(metrics)["agentworld_open_episodes",] == 1
    states["http://one"] = "half-open"
    values = samples(metrics)
    assert values["agentworld_open_episodes",] == 5
    counts = [values["agentworld_engine_state", "http://one", state] for state in get_args(State)]
    assert counts == [0, 0, 1]


def test_the_info_metric_names_the_simulator_by_its_digest():
    (info,) = (family for family in families(build()) if family.name == "agentworld_simulator_info")
    assert [(s.labels, s.value) for s in info.samples] == [({"simulator": SIMULATOR}, 1)]


def test_each_simulator_of_a_process_has_separate_metrics_from_its_start():
    metrics = build()
    before = samples(metrics)
    metrics.serve(OTHER, lambda: {"http://third": "closed"})
    metrics.of(SIMULATOR).count_step("http", Timings(total=0.1))
    values = samples(metrics)
    assert values["agentworld_steps_total", "http"] == 1
    assert values["agentworld_steps_total", "http", OTHER] == 0
    assert values["agentworld_engine_state", "http://third", OTHER, "closed"] == 1
    own_series = {frozenset({*key, OTHER}) for key in before if key[0] not in SHARED}
    assert own_series - set(map(frozenset, values)) == set()


def test_open_episodes_of_unserved_simulators_are_reported_down_to_zero():
    open_counts = [{OTHER: 2}, {}]
    metrics = build(lambda: open_counts.pop(0))
    first, second = samples(metrics), samples(metrics)
    assert (first["agentworld_open_episodes",], first["agentworld_open_episodes", OTHER]) == (0, 2)
    assert second["agentworld_open_episodes", OTHER] == 0


def test_a_ledger_failure_omits_only_the_open_episodes_metric():
    def fail():
        raise StoreError("gone")

    values = samples(build(fail))
    assert ("agentworld_open_episodes",) not in values
    assert values["agentworld_steps_total", "http"] == 0


def test_a_problem_counts_as_a_refusal_or_as_a_fault_by_its_kind():
    metrics = build()
    for kind in ("capacity", "store", "store", "internal"):
        metrics.count_problem(kind)
    names = ("agentworld_refusals_total", "agentworld_faults_total")
    assert {key: count for key, count in samples(metrics).items() if count and key[0] in names} == {
        ("agentworld_refusals_total", "capacity"): 1,
        ("agentworld_faults_total", "store"): 2,
        ("agentworld_faults_total", "internal"): 1,
    }


def test_every_problem_kind_is_either_a_refusal_or_a_fault():
    refusals, faults = set(get_args(Refusal)), set(get_args(Fault))
    assert refusals & faults == set()
    kinds = {*get_args(EngineFailure), *get_args(AccessFailure), "store", "unknown", "internal"}
    assert kinds - refusals - faults == set()


def test_a_service_exposes_all_series_from_its_start():
    metrics = build()
    before = samples(metrics)
    count_everything(metrics)
    after = samples(metrics)
    assert after.keys() == before.keys()
    assert after != before


def test_two_services_of_one_process_count_separately():
    first, second = build(), build()
    first.of(SIMULATOR).begin()
    assert samples(second)["agentworld_episodes_opened_total",] == 0


def test_a_scrape_gets_the_requested_exposition_format():
    metrics = build()
    text = metrics.render()
    assert text.content_type.startswith("text/plain; version=0.0.4")
    modern = metrics.render("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5")
    assert modern.content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert modern.body.endswith(b"# EOF\n")


def test_counting_a_step_takes_fewer_than_20_calls():
    timings, usage = Timings(0.001, 0.2, 0.003, 0.204), Usage(220, 20, 10)
    counts, events = build().of(SIMULATOR), []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    counts.count_step("http", timings, usage)
    sys.setprofile(None)
    assert events.count("call") + events.count("c_call") < 20


def test_the_docs_list_every_metric_with_its_type_and_labels():
    rows = [line.split(" | ") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    code_span = re.compile(r"`(.+?)`")
    documented = {
        name: (kind, set(code_span.findall(labels)))
        for name, kind, labels in ((code_span.findall(row[0])[0], *row[1:3]) for row in rows)
        if not name.startswith("agentworld_operator_")
    }
    exported = {}
    for family in families(build()):
        labels = [pair for sample in family.samples for pair in sample.labels.items()]
        values = {value for name, value in labels if name not in FREE}
        name = family.name + "_total" * (family.type == "counter")
        exported[name] = family.type, {name for name, _ in labels} - {"le"} | values
    assert documented == exported


@pytest.mark.waits
def test_promtool_finds_no_problem_in_the_metrics():
    metrics = build()
    count_everything(metrics)
    command = [prometheus.program("promtool"), "check", "metrics"]
    result = subprocess.run(command, input=metrics.render().body, capture_output=True, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (0, b"")

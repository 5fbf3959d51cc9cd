"""Measurements of a served simulator from the command line."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import make.service
from agentworld.records.report import ServedReport
from make import records

pytestmark = pytest.mark.compute


def test_evaluate_served_measures_once_a_day_unless_another_job_is_named(
    call, tmp_path, monkeypatch
):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    simulator = records.pinned(tmp_path)
    words = f"evaluate served {simulator.digest[7:20]} --recipe smoke --store {tmp_path}"
    service = make.service.service(tmp_path, lambda _messages: "[0] ~")
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        first, second = call(words), call(f"{words} --json")
        other = call(f"{words} --job again")
    assert (first.code, second.code, other.code) == (0, 0, 0)
    assert json.loads(second.out) == {"folder": first.out.strip()}
    assert other.out != first.out
    report = ServedReport.read(Path(first.out.strip()) / "report.json")
    metric = report.free_running.exact_match
    assert report.job == datetime.now(UTC).date().isoformat()
    summary = f"exact match {metric.mean:.3f} ({metric.low:.3f} to {metric.high:.3f})"
    assert first.error.splitlines()[-1] == summary
    assert len(simulator.reports) == 2


def test_evaluating_an_unknown_simulator_is_refused(call, tmp_path):
    result = call(f"evaluate served --recipe smoke --store {tmp_path}")
    assert (result.code, result.out) == (2, "")
    assert "there is no simulator sha256:shell" in result.error

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
    pinned = records.pinned(tmp_path)
    words = f"evaluate served {pinned.digest[7:20]} --recipe smoke --store {tmp_path}"
    service = make.service.service(tmp_path, lambda _messages: "[0] ~")
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        first, again = call(words), call(f"{words} --json")
        other = call(f"{words} --job again")
    assert (first.code, again.code, other.code) == (0, 0, 0)
    assert json.loads(again.out) == {"folder": first.out.strip()}
    assert other.out != first.out
    report = ServedReport.read(Path(first.out.strip()) / "report.json")
    found = report.free_running.exact_match
    assert report.job == datetime.now(UTC).date().isoformat()
    told = f"exact match {found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"
    assert first.error.splitlines()[-1] == told
    assert len(pinned.reports) == 2


def test_evaluating_an_unknown_simulator_is_refused(call, tmp_path):
    found = call(f"evaluate served --recipe smoke --store {tmp_path}")
    assert (found.code, found.out) == (2, "")
    assert "there is no simulator sha256:shell" in found.error

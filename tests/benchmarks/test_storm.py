"""A storm of ten seconds, and what is said of one."""

import json
from pathlib import Path

import pytest

from benchmarks.resident import Resident, growth
from benchmarks.rude_clients import RUDE
from benchmarks.slow_clients import SLOW
from benchmarks.storm import Size, measure_storm

SIZE = Size(healthy=16, slow=50, rude=16)


def test_memory_that_stays_is_flat_and_memory_that_grows_is_not():
    flat = growth([Resident(seconds, 100.0) for seconds in range(9)])
    assert (flat.ratio, flat.mib_per_hour) == (1.0, 0.0)
    grown = growth([Resident(seconds, 100.0 + seconds) for seconds in range(9)])
    assert grown.ratio == pytest.approx(107 / 101)
    assert (grown.highest_mib, grown.mib_per_hour) == (108.0, pytest.approx(3600))


@pytest.mark.slow
def test_healthy_clients_see_no_error_in_a_storm(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # the service's
    storm = measure_storm(tmp_path, seconds=10, alone_seconds=2, size=SIZE)
    assert storm.healthy_errors == []
    assert storm.among.steps > 0
    assert (storm.server_errors, storm.num_tracebacks) == (0, 0)
    assert len(storm.log) < 5
    came = {kind.__name__ for kind in (*SLOW, *RUDE)} - {"idle_socket", "slow_body", "half_open"}
    assert came - storm.rounds.keys() <= {"slow_reader", "slow_message"}
    missed = {figure.name for figure in storm.figures if not figure.holds}
    assert missed <= {"storm.memory_ratio", "storm.p99_ratio"}  # of ten seconds, they say nothing
    assert json.loads(json.dumps(storm.as_json()))["rounds"] == storm.rounds

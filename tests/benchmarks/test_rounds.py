"""What is said of a server, and how our figures stand against a peer's."""

import pytest

from benchmarks.load import Round
from benchmarks.rounds import summary
from benchmarks.step_rates import ASYNC, OURS, PEER, StepRates


def rounds(*rates, p50_ms=1.0):
    return [
        Round(
            episodes=1,
            steps=round(rate),
            steps_per_second=rate,
            p50_ms=p50_ms,
            p99_ms=2.0,
            server_us=1e6 / rate,
            client_share=rate / 1_000,
        )
        for rate in rates
    ]


RATES = StepRates(
    {
        1: {
            PEER: rounds(100.0, 200.0, 100.0, p50_ms=0.25),
            ASYNC: rounds(50.0, 50.0, 50.0),
            OURS: rounds(50.0, 100.0, 75.0, p50_ms=0.75),
        }
    },
    fsync_p50_ms=0.125,
)


def test_a_summary_is_the_median_of_the_rounds_with_their_extremes():
    said = summary(rounds(100.0, 300.0, 200.0))
    assert said.steps_per_second == 200.0
    assert said.steps_per_second_interval == (100.0, 300.0)
    assert said.client_share == 0.3


def test_the_added_time_is_ours_above_the_peers_with_one_episode():
    assert RATES.added_p50_ms == pytest.approx(0.5)


def test_the_json_names_servers_ratios_and_the_share_of_fsync():
    found = RATES.as_json()
    assert found[OURS]["1"]["steps_per_second"] == 75.0
    assert found["ratio"] == {"1": 0.5}
    assert found["ratio_interval"] == {"1": (0.5, 0.75)}
    assert found["ratio_async"] == {"1": 1.5}
    assert found["fsync_share"] == pytest.approx(0.25)

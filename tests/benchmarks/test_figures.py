"""Published statistics of hand-calculated measurements."""

import pytest

from benchmarks.figures import percentile, ratios, spread
from benchmarks.kfp_log import seconds_of_tasks
from benchmarks.load import Round
from benchmarks.memory import EpisodeGrowth, Resident, growth
from benchmarks.rates import ASYNC, OURS, PEER, StepRates, summary

LOG = """\
23:59:58.500 - INFO - Running pipeline: \x1b[95m'world-model'\x1b[0m
23:59:58.750 - INFO - Executing task \x1b[96m'open-run'\x1b[0m
    a step may say: Task 'open-run' finished
00:00:01.000 - INFO - Task \x1b[96m'open-run'\x1b[0m finished with status \x1b[92mSUCCESS\x1b[0m
00:00:01.001 - INFO - Task \x1b[96m'open-run'\x1b[0m outputs:
00:00:01.500 - INFO - Executing task 'collect'
00:00:02.000 - INFO - Task 'collect' finished with status SUCCESS
00:00:03.000 - INFO - Executing task 'prepare'
"""


def rounds(*rates, p50_ms=1.0):
    defaults = {"episodes": 1, "steps": 1, "p50_ms": p50_ms, "p99_ms": 2.0, "server_us": 1.0}
    return [Round(**defaults, steps_per_second=rate, client_share=rate / 1_000) for rate in rates]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 2.0), (0.75, 3.0), (0.76, 4.0), (0.99, 4.0), (0.0, 1.0)]
)
def test_a_percentile_is_the_least_value_that_reaches_the_share(share, expected):
    assert percentile([1.0, 2.0, 3.0, 4.0], share) == expected


def test_a_spread_is_the_median_with_extremes_that_are_trimmed_for_many_rounds():
    assert spread([3.0, 1.0, 2.0, 10.0]) == (2.5, 1.0, 10.0)
    assert spread([float(n) for n in range(9)]) == (4.0, 0.0, 8.0)
    assert spread([float(n) for n in range(10)]) == (4.5, 1.0, 8.0)
    # Of 24 values, 7 or more are on each side of the median in 98 of 100 cases.
    assert spread([float(n) for n in range(24)]) == (11.5, 6.0, 17.0)


def test_ratios_compare_rounds_in_pairs_and_refuse_an_unpaired_round():
    slow_then_fast, half_of_it = [100.0, 1000.0, 400.0], [50.0, 500.0, 100.0]
    assert ratios(slow_then_fast, half_of_it) == (2.0, 2.0, 4.0)
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])


def test_a_summary_is_the_median_of_the_rounds_with_their_extremes():
    medians = summary(rounds(100.0, 300.0, 200.0))
    assert (medians.steps_per_second, medians.steps_per_second_interval) == (200.0, (100.0, 300.0))
    assert medians.client_share == 0.3


def test_step_rates_report_the_ratio_to_each_peer_and_the_added_time():
    one_episode = {
        PEER: rounds(100.0, 200.0, 100.0, p50_ms=0.25),
        ASYNC: rounds(50.0, 50.0, 50.0),
        OURS: rounds(50.0, 100.0, 75.0, p50_ms=0.75),
    }
    fields = StepRates({1: one_episode}, fsync_p50_ms=0.125).as_json()
    assert fields[OURS]["1"]["steps_per_second"] == 75.0
    assert (fields["ratio"], fields["ratio_interval"]) == ({"1": 0.5}, {"1": (0.5, 0.75)})
    assert fields["ratio_async"] == {"1": 1.5}
    assert (fields["added_p50_ms"], fields["fsync_share"]) == (0.5, 0.25)


def test_episode_memory_is_the_larger_of_the_few_and_many_episode_figures():
    assert EpisodeGrowth(few_kib=12.0, many_kib=8.0).episode_kib == 12.0
    assert EpisodeGrowth(few_kib=8.0, many_kib=12.0).episode_kib == 12.0


def test_constant_memory_has_no_growth_and_rising_memory_has_growth():
    flat = growth([Resident(seconds, 100.0) for seconds in range(9)])
    assert (flat.ratio, flat.mib_per_hour) == (1.0, 0.0)
    trend = growth([Resident(seconds, 100.0 + seconds) for seconds in range(9)])
    assert trend.ratio == pytest.approx(107 / 101)
    assert (trend.highest_mib, trend.mib_per_hour) == (108.0, pytest.approx(3600))


def test_the_seconds_of_a_task_are_counted_across_midnight():
    assert seconds_of_tasks(LOG) == {"open_run": 2.25, "collect": 0.5}

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.evaluate.bootstrap import estimate, estimate_difference
from agentworld.records.report import Estimate


def test_the_mean_is_over_values_and_not_over_episodes():
    result = estimate([[1, 1, 1], [0]], 200, seed=0)
    assert (result.mean, result.num, result.holes) == (0.75, 4, 0)


def test_holes_are_left_out_and_counted():
    result = estimate([[1, None], [None], [0]], 200, seed=0)
    assert (result.mean, result.num, result.holes) == (0.5, 2, 2)


def test_equal_values_give_an_interval_of_zero_width():
    result = estimate([[1.0, 1.0], [1.0]], 200, seed=0)
    assert (result.low, result.high) == (1, 1)


def test_an_estimate_without_a_value_is_refused():
    with pytest.raises(ValueError, match="no value"):
        estimate([[None], []], 200, seed=0)


def test_the_interval_is_the_same_for_a_seed():
    values = [[n**0.5, n % 3] for n in range(30)]
    assert estimate(values, 500, seed=1) == estimate(values, 500, seed=1)
    assert estimate(values, 500, seed=1) != estimate(values, 500, seed=2)


def test_turns_of_one_episode_are_not_treated_as_independent():
    separate = estimate([[n % 2] for n in range(400)], 2_000, seed=0)
    grouped = estimate([[n % 2] * 20 for n in range(20)], 2_000, seed=0)
    assert grouped.mean == separate.mean == 0.5
    assert grouped.high - grouped.low > 3 * (separate.high - separate.low)


@pytest.mark.compute
def test_the_interval_covers_the_true_value_about_95_percent_of_the_time():
    rng = np.random.default_rng(0)
    num_covered = 0
    for seed in range(300):
        result = estimate([[value] for value in rng.random(60) < 0.4], 400, seed)
        num_covered += result.low <= 0.4 <= result.high
    assert 0.9 < num_covered / 300 <= 0.99


def test_a_difference_is_computed_per_task():
    # Each task gains exactly a half, however much the tasks differ.
    before = [[n / 100] for n in range(50)]
    result = estimate_difference([[value + 0.5] for (value,) in before], before, 200, seed=0)
    assert (result.mean, result.low, result.high) == pytest.approx((0.5, 0.5, 0.5))


def test_a_hole_on_either_side_is_a_hole_of_the_difference():
    result = estimate_difference([[1, None], [1]], [[0, 0], [None]], 200, seed=0)
    assert (result.mean, result.num, result.holes) == (1, 1, 2)


@pytest.mark.parametrize("before", [[[0]], [[0], [0, 1]]], ids=["episodes", "turns"])
def test_a_difference_of_different_numbers_of_episodes_or_turns_is_refused(before):
    with pytest.raises(ValueError, match="shorter|longer"):
        estimate_difference([[1], [1]], before, 200, seed=0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-0.1, 0.1, False), (0, 0.1, False), (0.01, 0.1, True), (-2, -1, True)],
)
def test_only_an_interval_on_one_side_of_zero_excludes_zero(low, high, expected):
    assert Estimate(mean=(low + high) / 2, low=low, high=high, num=9).excludes_zero is expected


def test_a_change_combines_both_intervals_as_independent_errors():
    before = Estimate(mean=0.8, low=0.7, high=0.84, num=50)
    after = Estimate(mean=0.6, low=0.57, high=0.68, num=90, holes=3)
    change = after.less(before)
    assert (change.mean, change.num, change.holes) == (pytest.approx(-0.2), 90, 3)
    assert change.low == pytest.approx(-0.2 - 0.05)  # 3 and 4 make 5
    assert change.high == pytest.approx(-0.2 + math.hypot(0.08, 0.1))


def episodes(rng, num, success_rate):
    """Episodes of ten turns, which succeed with the same probability in an episode."""
    skills = rng.beta(3 * success_rate, 3 * (1 - success_rate), num)
    return [[bool(turn) for turn in rng.random(10) < skill] for skill in skills]


def is_drift(rng, seed, rate_after, rate_before):
    after, before = (
        estimate(episodes(rng, 50, rate), 200, seed) for rate in (rate_after, rate_before)
    )
    return after.less(before).high < 0


@pytest.mark.compute
def test_false_drifts_are_rare_and_large_drifts_are_detected():
    rng = np.random.default_rng(0)
    chance = sum(is_drift(rng, seed, 0.8, 0.8) for seed in range(300)) / 300
    assert chance <= 0.06
    assert sum(is_drift(rng, seed, 0.55, 0.8) for seed in range(100)) >= 95


BOUNDED = st.floats(0, 1).map(lambda x: round(x, 6))
ESTIMATES = st.tuples(BOUNDED, BOUNDED, BOUNDED).map(
    lambda ends: Estimate(low=min(ends), mean=sorted(ends)[1], high=max(ends), num=1)
)


@given(ESTIMATES, ESTIMATES)
def test_a_change_is_within_its_bounds_and_its_interval_is_antisymmetric(after, before):
    change, reverse = after.less(before), before.less(after)
    assert change.low <= change.mean <= change.high
    assert (change.low, change.high) == (-reverse.high, -reverse.low)

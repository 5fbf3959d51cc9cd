import time

import numpy as np
import pytest

from agentworld.evaluate.bootstrap import estimate, estimate_difference


def test_the_mean_is_over_values_and_not_over_episodes():
    found = estimate([[1, 1, 1], [0]], 200, seed=0)
    assert (found.mean, found.num, found.holes) == (0.75, 4, 0)


def test_holes_are_left_out_and_counted():
    found = estimate([[1, None], [None], [0]], 200, seed=0)
    assert (found.mean, found.num, found.holes) == (0.5, 2, 2)


def test_equal_values_leave_no_doubt():
    found = estimate([[1.0, 1.0], [1.0]], 200, seed=0)
    assert (found.low, found.high) == (1, 1)


def test_values_without_any_are_refused():
    with pytest.raises(ValueError, match="no value"):
        estimate([[None], []], 200, seed=0)


def test_the_interval_is_the_same_for_a_seed():
    values = [[n**0.5, n % 3] for n in range(30)]
    assert estimate(values, 500, seed=1) == estimate(values, 500, seed=1)
    assert estimate(values, 500, seed=1) != estimate(values, 500, seed=2)


def test_turns_of_one_episode_are_no_independent_witnesses():
    alone = estimate([[n % 2] for n in range(400)], 2_000, seed=0)
    together = estimate([[n % 2] * 20 for n in range(20)], 2_000, seed=0)
    assert together.mean == alone.mean == 0.5
    assert together.high - together.low > 3 * (alone.high - alone.low)


@pytest.mark.slow
def test_the_interval_covers_the_truth_nineteen_times_in_twenty():
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(300):
        found = estimate([[value] for value in rng.random(60) < 0.4], 400, seed)
        covered += found.low <= 0.4 <= found.high
    assert 0.9 < covered / 300 <= 0.99


def test_a_difference_is_taken_task_by_task():
    # Each task gains exactly a half, however much the tasks differ.
    before = [n / 100 for n in range(50)]
    found = estimate_difference([value + 0.5 for value in before], before, 200, seed=0)
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_a_hole_on_either_side_is_a_hole_of_the_difference():
    found = estimate_difference([1, None, 1], [0, 0, None], 200, seed=0)
    assert (found.mean, found.num, found.holes) == (1, 1, 2)


def test_differences_of_different_tasks_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        estimate_difference([1, 1], [0], 200, seed=0)


def test_many_episodes_take_little_memory_and_time():
    started = time.process_time()
    estimate([[n % 2] for n in range(20_000)], 500, seed=0)
    assert time.process_time() - started < 5

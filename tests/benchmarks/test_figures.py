"""The arithmetic behind the tables, with numbers worked by hand."""

import pytest

from benchmarks.figures import percentile, ratios, spread


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 2.0), (0.75, 3.0), (0.76, 4.0), (0.99, 4.0), (0.0, 1.0)]
)
def test_a_percentile_is_the_least_value_that_reaches_the_share(share, expected):
    assert percentile([1.0, 2.0, 3.0, 4.0], share) == expected


def test_a_spread_is_the_median_between_the_extremes_of_a_few_rounds():
    assert spread([3.0, 1.0, 2.0, 10.0]) == (2.5, 1.0, 10.0)


def test_a_spread_of_many_rounds_leaves_out_the_rarest():
    # Of 24 values 7 or more lie on each side of the median in 98 of 100 cases.
    assert spread([float(n) for n in range(24)]) == (11.5, 6.0, 17.0)
    assert spread([float(n) for n in range(10)]) == (4.5, 1.0, 8.0)
    assert spread([float(n) for n in range(9)]) == (4.0, 0.0, 8.0)


def test_ratios_compare_neighbours_in_time():
    slow_then_fast, half_of_it = [100.0, 1000.0, 400.0], [50.0, 500.0, 100.0]
    assert ratios(slow_then_fast, half_of_it) == (2.0, 2.0, 4.0)


def test_ratios_refuse_rounds_without_a_neighbour():
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])

"""Episodes that are held open, and what is said of the memory that they take."""

from benchmarks.episode_memory import Growth
from benchmarks.hold import at_most


def test_an_episode_stops_after_its_turns():
    goes_on = at_most(3)
    assert [goes_on(0.0, 1.0) for _ in range(3)] == [True, True, False]


def test_the_dearer_of_few_and_many_episodes_counts():
    assert Growth(few_kib=12.0, many_kib=8.0).episode_kib == 12.0
    assert Growth(few_kib=8.0, many_kib=12.0).episode_kib == 12.0

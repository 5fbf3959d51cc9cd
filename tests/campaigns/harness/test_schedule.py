from itertools import islice

from campaigns.harness.schedule import shuffled


def draw(seed, num=8):
    return [*islice(shuffled({"a": 1, "b": 3}, seed), num)]


def test_each_shuffled_round_contains_each_fault_as_often_as_its_share():
    assert sorted(draw("1", 4)) == sorted(draw("1")[4:]) == ["a", "b", "b", "b"]


def test_the_order_follows_from_the_seed():
    assert draw("1", 40) == draw("1", 40) != draw("2", 40)

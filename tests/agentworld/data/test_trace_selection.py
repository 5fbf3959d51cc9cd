from itertools import permutations

import pytest

from agentworld.data.trace_selection import ScoredRollout, select
from agentworld.errors import JudgeError


def rollouts(*scores):
    pairs = zip("abc", scores, strict=True)
    return [ScoredRollout(f"thought {name}", name, score) for name, score in pairs]


def prefer(name):
    """A judge that prefers one observation to all others."""
    return lambda first, second: "A" if first == name else "B" if second == name else "tie"


@pytest.mark.parametrize("name", "abc")
def test_the_rollout_with_most_wins_is_selected_whatever_its_score(name):
    assert select(rollouts(4, 5, 4), 4, prefer(name)).observation == name


def test_a_judge_with_a_position_bias_does_not_affect_the_selection():
    assert select(rollouts(4, 5, 4), 4, lambda *_: "A").observation == "b"
    assert select(rollouts(4, 5, 4), 4, lambda *_: "B").observation == "b"


def test_each_pair_is_compared_in_both_orders():
    pairs = []
    select(rollouts(4, 5, 4), 4, lambda *pair: pairs.append(pair) or "tie")
    assert sorted(pairs) == sorted(permutations("abc", 2))


def test_without_comparisons_the_score_decides_and_then_the_order():
    assert select(rollouts(4, 5, 5), 4, None).observation == "b"


def test_a_winner_below_the_threshold_is_not_replaced_by_another_rollout():
    assert select(rollouts(3, 5, 5), 4, prefer("a")) is None
    assert select(rollouts(4, 5, 5), 4, prefer("a")).observation == "a"


def test_no_comparison_is_made_if_no_score_reaches_the_threshold():
    assert select(rollouts(3, 3, 3), 4, lambda *_: pytest.fail("it was asked")) is None


def test_equal_observations_are_a_tie_without_a_comparison():
    twins = [ScoredRollout("one", "a", 4), ScoredRollout("two", "a", 5)]
    assert select(twins, 4, lambda *_: pytest.fail("it was asked")).thought == "two"


def test_a_comparison_without_a_verdict_raises_a_judge_error():
    def judge(first, second):
        if "c" in (first, second):
            raise JudgeError("as the test wants it")
        return "A" if first == "a" else "B"

    with pytest.raises(JudgeError):
        select(rollouts(4, 5, 4), 4, judge)

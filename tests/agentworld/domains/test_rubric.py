import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.base import domain_of
from agentworld.domains.rubric import (
    BEST,
    RubricScore,
    grade,
    line_agreement,
    word_coverage,
    word_precision,
)

LINES = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(" ".join), max_size=4)


def test_the_reward_is_five_times_the_mean():
    assert RubricScore(5, 5, 5, 5, 5).reward == 25
    assert RubricScore(1, 1, 1, 1, 1).reward == 5
    assert RubricScore(5, 4, 3, 2, 1).reward == 15


def test_a_dimension_that_a_judge_left_out_is_left_out_of_the_mean():
    assert RubricScore(4, 0, 0, 2, 0).mean == 3


@pytest.mark.parametrize(("share", "score"), [(0, 1), (0.5, 3), (1, BEST)])
def test_a_share_is_graded_from_one_to_five(share, score):
    assert grade(share) == score


def test_lines_agree_in_any_order_and_words_are_counted():
    assert line_agreement(["a", "b"], ["b", "a"]) == 1
    assert line_agreement(["a", "b"], ["a"]) == pytest.approx(2 / 3)
    assert word_precision(["a x"], ["a b c d"]) == 0.5
    assert word_coverage(["a x"], ["a b c d"]) == 0.25


def test_an_empty_prediction_is_right_only_for_an_empty_truth():
    for measure in (line_agreement, word_precision, word_coverage):
        assert measure([], []) == 1
        assert measure(["a"], []) == measure([], ["a"]) == 0


@given(LINES, LINES)
def test_every_measure_is_a_share_and_is_one_for_equal_texts(predicted, truth):
    for measure in (line_agreement, word_precision, word_coverage):
        assert 0 <= measure(predicted, truth) <= measure(truth, truth) == 1


@pytest.mark.parametrize("name", ["mcp", "shell", "text"])
def test_the_judge_prompt_treats_material_as_data_and_lists_every_dimension(name):
    prompt = domain_of(name).rubric.judge_prompt
    assert "never an instruction" in " ".join(prompt.split())
    for dimension in RubricScore._fields:
        assert f"- {dimension}:" in prompt
        assert f'"{dimension}": 1' in prompt

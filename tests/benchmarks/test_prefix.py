"""How much of the prompts a cache can have had: worked by hand with blocks of two tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.prefix import Asked, CacheCounts, hit_bound, read_counts

TOKENS = st.lists(st.integers(0, 1), max_size=9)
ASKED = st.lists(st.tuples(TOKENS, TOKENS).map(lambda both: Asked(both[0], both[0] + both[1])))


def test_the_first_prompt_hits_nothing():
    assert hit_bound([Asked([1, 2, 3], [1, 2, 3, 4])], 2) == 0


def test_a_history_that_grew_hits_the_whole_blocks_of_what_was_computed():
    first = Asked([1, 2, 3], [1, 2, 3, 4, 5])
    second = Asked([1, 2, 3, 4, 5, 6, 7], [])
    assert hit_bound([first, second], 2) == 4


def test_the_last_token_of_a_prompt_is_always_computed():
    again = Asked([1, 2, 3, 4], [1, 2, 3, 4])
    assert hit_bound([again, again], 2) == 2


def test_a_block_behind_another_beginning_is_not_found():
    assert hit_bound([Asked([], [1, 2, 3, 4]), Asked([9, 9, 3, 4, 5], [])], 2) == 0


def test_a_beginning_that_episodes_share_is_found_in_the_second():
    episodes = [Asked([1, 2, 3, 7], [1, 2, 3, 7]), Asked([1, 2, 3, 8], [1, 2, 3, 8])]
    assert hit_bound(episodes, 2) == 2


@pytest.mark.slow
@given(ASKED, st.integers(1, 3))
def test_the_bound_is_whole_blocks_and_less_than_what_was_asked(asked, block_tokens):
    bound = hit_bound(asked, block_tokens)
    assert bound % block_tokens == 0
    assert 0 <= bound <= sum(max(0, len(prompt) - 1) for prompt, _ in asked)


def test_the_counters_are_read_from_the_text_of_metrics():
    text = (
        "# HELP vllm:prefix_cache_queries_total Queries.\n"
        'vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1536.0\n'
        'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1.024e+03\n'
        'vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0"} 1.0\n'
    )
    assert read_counts(text) == CacheCounts(1024.0, 1536.0, 128)

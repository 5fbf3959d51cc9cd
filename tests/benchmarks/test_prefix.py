"""The possible cache hits of prompts, calculated by hand with blocks of two tokens."""

import pytest

from benchmarks.prefix import CacheCounts, CachedRequest, hit_bound, read_counts

FIRST = CachedRequest([1, 2, 3], [1, 2, 3, 4, 5])
LONGER = CachedRequest([1, 2, 3, 4], [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("requests", "bound"),
    [
        ([FIRST], 0),
        ([FIRST, CachedRequest([1, 2, 3, 4, 5, 6, 7], [])], 4),
        ([LONGER, LONGER], 2),
        ([LONGER, CachedRequest([1, 2, 3, 4, 5], [])], 4),
        ([LONGER, CachedRequest([3, 4, 1, 2, 5], [])], 0),
        ([CachedRequest([1, 2, 3, 7], [1, 2, 3, 7]), CachedRequest([1, 2, 3, 8], [1, 2, 3, 8])], 2),
    ],
    ids=["first", "grown-history", "last-token", "whole-blocks", "other-order", "shared-beginning"],
)
def test_a_prompt_hits_the_computed_whole_blocks_before_its_last_token(requests, bound):
    assert hit_bound(requests, 2) == bound


def test_the_counters_are_read_from_the_text_of_metrics():
    text = (
        "# HELP vllm:prefix_cache_queries_total Queries.\n"
        'vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1536.0\n'
        'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1.024e+03\n'
        'vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0"} 1.0\n'
    )
    assert read_counts(text) == CacheCounts(1024.0, 1536.0, 128)

"""The possible and the actual hits of prompts in an engine's prefix cache."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

HITS, QUERIES = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"
_CONFIGURATION = "vllm:cache_config_info"


class CachedRequest(NamedTuple):
    """One request, as token ids."""

    prompt: Sequence[int]
    computed: Sequence[int]
    """The tokens of the prompt and the response: all that the cache can hold afterwards."""


class CacheCounts(NamedTuple):
    """vLLM's own counters, in tokens."""

    hits: float
    queries: float
    block_tokens: int


def hit_bound(requests: Iterable[CachedRequest], block_tokens: int) -> int:
    """The maximum of cached prompt tokens with whole blocks, for requests in this order.

    The last token of a prompt is always computed, because its successor is needed.
    """
    blocks: set[tuple[int, ...]] = set()
    bound = 0
    for prompt, computed in requests:
        hits = takewhile(blocks.__contains__, _beginnings(prompt[:-1], block_tokens))
        bound += block_tokens * sum(1 for _ in hits)
        blocks.update(_beginnings(computed, block_tokens))
    return bound


def _beginnings(tokens: Sequence[int], block_tokens: int) -> list[tuple[int, ...]]:
    """A cached block is only found after the same preceding blocks."""
    ends = range(block_tokens, len(tokens) + 1, block_tokens)
    return [tuple(tokens[:end]) for end in ends]


def read_counts(metrics: str) -> CacheCounts:
    """The counters in the text of `/metrics`."""
    size = _line(metrics, _CONFIGURATION).partition('block_size="')[2].partition('"')[0]
    return CacheCounts(_value(metrics, HITS), _value(metrics, QUERIES), int(size))


def _value(metrics: str, name: str) -> float:
    return float(_line(metrics, name).rpartition(" ")[2])


def _line(metrics: str, name: str) -> str:
    return next(line for line in metrics.splitlines() if line.startswith(name + "{"))

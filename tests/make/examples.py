"""How many examples a test tries of a property that needs fewer, or more, than others do."""

from typing import Any

from hypothesis import settings

_USUAL = 100


def examples(num: int, **options: Any) -> settings:
    """So many where others try a hundred; a quick run tries the same part of both."""
    share = settings().max_examples / _USUAL
    return settings(max_examples=max(1, round(num * share)), **options)

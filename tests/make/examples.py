"""The number of examples of a property test that needs fewer, or more, than the default."""

from typing import Any

from hypothesis import settings

_USUAL = 100


def examples(num: int, **options: Any) -> settings:
    """Scales `num` relative to the default of a hundred, so that a quick run reduces both
    equally.
    """
    share = settings().max_examples / _USUAL
    return settings(max_examples=max(1, round(num * share)), **options)

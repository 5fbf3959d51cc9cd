"""How a training reports its figures by step: a callback of the caller."""

from collections.abc import Callable, Mapping

OnMetrics = Callable[[int, Mapping[str, float]], None]
"""Called with a step and its figures by name; it must be cheap to call."""


def ignore_metrics(step: int, figures: Mapping[str, float]) -> None:
    """For callers who do not look."""

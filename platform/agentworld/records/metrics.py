"""A callback for a training's metrics by step."""

from collections.abc import Callable, Mapping

OnMetrics = Callable[[int, Mapping[str, float]], None]
"""Called with a step and its metrics by name; it must be fast."""


def ignore_metrics(step: int, figures: Mapping[str, float]) -> None:
    """A callback that does nothing."""

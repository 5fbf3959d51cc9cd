"""Curves of a training: its figures by step, as points of plots."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

WIDTH = 1000
HEIGHT = 100
"""In a plot's own coordinates, which a page scales."""
_MOST_POINTS = 400
NUM_KINDS = 8
"""Colours and dashes that a reader can distinguish."""

_BY_DOMAIN = "validation_loss/"
_PLOTS = {
    "Loss": ("loss", "validation_loss"),
    "Reward": ("reward", "reward_std"),
    "Gradient norm": ("gradient_norm",),
    "Learning rate": ("learning_rate",),
    "Tokens per second": ("tokens_per_second",),
    "Tokens of a sample, mean": ("sample_tokens",),
    "Tokens of an answer, mean": ("answer_tokens",),
    "Share of answers that are cut off": ("cut_off_share",),
    "Share of groups with equal rewards": ("equal_groups",),
    "Answers without a reward": ("holes",),
    "Answers of the judge": ("judge_answers",),
    "Tokens of the judge": ("judge_prompt_tokens", "judge_tokens"),
    "Dollars of the judge": ("judge_dollars",),
    "Entropy": ("entropy",),
    "Share of padding": ("padding_share",),
    "Memory in GiB, the most so far": ("memory_gib",),
    "MFU": ("mfu",),
}

Figures = Mapping[int, Mapping[str, float]]
"""Values by step, in order, and by name."""
Points = list[tuple[int, float]]
"""Steps and values."""


class Curve(NamedTuple):
    """A figure over the steps."""

    name: str
    points: str
    """The points of an SVG polyline."""
    kind: int
    """Its colour and dashes."""
    last: str


class CurvePlot(NamedTuple):
    """Curves on one scale."""

    title: str
    curves: list[Curve]
    low: str
    high: str
    first_step: int
    last_step: int
    label: str
    """The plot as text, for screen readers."""


def plots_of(figures: Figures) -> list[CurvePlot]:
    """A plot for each group of figures that has data; a figure without a group has its own plot."""
    names = list(dict.fromkeys(name for values in figures.values() for name in values))
    groups = dict(_PLOTS)
    domains = tuple(name for name in sorted(names) if name.startswith(_BY_DOMAIN))
    grouped = {*domains, *(name for group in groups.values() for name in group)}
    groups |= {name: (name,) for name in names if name not in grouped}
    loss, *others = groups.items()
    ordered = [loss, ("Validation loss by domain", domains), *others]
    plots = (_plot(title, group, figures) for title, group in ordered)
    return [plot for plot in plots if plot]


def not_finite(figures: Figures) -> str:
    """Names the first figure with a value that is not finite, which a curve leaves out; empty if
    there is none.
    """
    for step, values in figures.items():
        for name, value in values.items():
            if not math.isfinite(value):
                return f"{name} is {value} at step {step}"
    return ""


def _plot(title: str, names: Sequence[str], figures: Figures) -> CurvePlot | None:
    series = {name: _finite(name, figures) for name in names}
    series = {name: points for name, points in series.items() if points}
    if not series:
        return None
    values = [value for points in series.values() for _, value in points]
    low, high = min(values), max(values)
    first, last = min(figures), max(figures)
    curves = [
        Curve(
            name.removeprefix(_BY_DOMAIN),
            _polyline(thinned(points), (first, last), (low, high)),
            number % NUM_KINDS,
            _to_text(points[-1][1]),
        )
        for number, (name, points) in enumerate(series.items())
    ]
    label = "; ".join(_sentence(name, points) for name, points in series.items())
    return CurvePlot(title, curves, _to_text(low), _to_text(high), first, last, f"{title}: {label}")


def _finite(name: str, figures: Figures) -> Points:
    return [
        (step, values[name])
        for step, values in figures.items()
        if name in values and math.isfinite(values[name])
    ]


def thinned(points: Points) -> Points:
    """At most 400 points: the lowest and the highest of each part, so that peaks stay."""
    if len(points) <= _MOST_POINTS:
        return points
    size = math.ceil(2 * len(points) / _MOST_POINTS)
    parts = (points[start : start + size] for start in range(0, len(points), size))
    ends = ({min(part, key=_value), max(part, key=_value)} for part in parts)
    return [point for pair in ends for point in sorted(pair)]


def _value(point: tuple[int, float]) -> float:
    return point[1]


def _polyline(points: Points, steps: tuple[int, int], values: tuple[float, float]) -> str:
    """Points of a polyline, in which the highest value has the smallest y.

    A single point is a line of length 0.
    """
    places = [
        (WIDTH * _share(step, *steps), HEIGHT * (1 - _share(value, *values)))
        for step, value in points
    ]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in _at_least_two(places))


def _at_least_two(places: Sequence[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    return places if len(places) > 1 else [*places, *places]


def _share(value: float, low: float, high: float) -> float:
    """The position of a value between two others; 0.5 if these are equal."""
    return (value - low) / (high - low) if high > low else 0.5


def _sentence(name: str, points: Points) -> str:
    (first_step, first), (last_step, last) = points[0], points[-1]
    return f"{name} {_to_text(first)} at step {first_step}, {_to_text(last)} at step {last_step}"


def _to_text(value: float) -> str:
    """The value with three or four digits."""
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"

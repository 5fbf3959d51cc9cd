"""The names of a world model's figures in gates and in the registry."""

from collections.abc import Iterator

from agentworld.records.report import Figures, WorldModelReport, figures_of_record

_BASELINE = "baseline."


def metrics_of(report: WorldModelReport) -> dict[str, float]:
    """The means of a report, as `rl.exact_match` or `baseline.copy.by_tag.history`."""
    return {
        f"{name}.{measure}": estimate.mean
        for name, score in _scores(report)
        for measure, estimate in figures_of_record(score).items()
    }


def registered_metrics_of(report: WorldModelReport) -> dict[str, float]:
    """The figures that a version is registered with; fewer, because a registry lists all of them.

    For stages: exact match, also by tag and by kind, and the other metrics. For baselines: exact
    match and the other metrics.
    """
    return {name: mean for name, mean in metrics_of(report).items() if _is_registered(name)}


def parts_of(name: str) -> tuple[str, str]:
    """The scored predictor and the measure: `baseline.copy` and `by_tag.history`."""
    num = 2 if name.startswith(_BASELINE) else 1
    parts = name.split(".", num)
    return ".".join(parts[:num]), parts[num]


def _is_registered(name: str) -> bool:
    scored, measure = parts_of(name)
    group, dot, inside = measure.partition(".")
    if not dot:
        return True
    is_exact = group == "by_tag" or (group == "by_kind" and inside.endswith(".exact_match"))
    return is_exact and not scored.startswith(_BASELINE)


def _scores(report: WorldModelReport) -> Iterator[tuple[str, Figures]]:
    yield from report.stages.items()
    for name, score in report.baselines.items():
        yield f"baseline.{name}", score

"""What a world model's figures are called where it is judged and where it is registered."""

from agentworld.records.report import WorldModelReport, WorldModelScore


def metrics_of(report: WorldModelReport) -> dict[str, float]:
    """The means of a report, as `rl.exact_match` or `baseline.copy.by_tag.history`."""
    scores = {**report.stages, **{f"baseline.{k}": v for k, v in report.baselines.items()}}
    return {
        f"{name}.{measure}": value
        for name, score in scores.items()
        for measure, value in _means(score).items()
    }


def _means(score: WorldModelScore) -> dict[str, float]:
    others = {name: estimate.mean for name, estimate in score.metrics.items()}
    tags = {f"by_tag.{tag}": estimate.mean for tag, estimate in score.by_tag.items()}
    return {"exact_match": score.exact_match.mean, **tags, **others}

"""Metrics of a predicted observation: one module for each."""

from agentworld.evaluate.metrics.base import Metric, metric_names, metric_of, open_metrics

__all__ = ["Metric", "metric_names", "metric_of", "open_metrics"]

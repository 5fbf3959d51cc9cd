"""Metrics of a predicted observation: one module for each."""

from agentworld.evaluate.metrics.base import Metric, metric_of

__all__ = ["Metric", "metric_of"]

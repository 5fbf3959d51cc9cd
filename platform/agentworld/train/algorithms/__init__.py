"""Algorithms of group RL: one module for each."""

from agentworld.train.algorithms.base import Algorithm, algorithm_of

__all__ = ["Algorithm", "algorithm_of"]

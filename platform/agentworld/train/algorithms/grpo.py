"""GRPO, with the wider upper bound of DAPO (Yu et al. 2025, arXiv 2503.14476, section 3.1)."""

from agentworld.train.algorithms.base import Algorithm

ALGORITHM = Algorithm(importance="token", clip_low=0.2, clip_high=0.28)

"""GSPO (Zheng et al. 2025, arXiv 2507.18071, section 5.1).

It clips the ratio of whole sequences, which is nearer to 1 than that of tokens.
"""

from agentworld.train.algorithms.base import Algorithm

ALGORITHM = Algorithm(importance="sequence", clip_low=3e-4, clip_high=4e-4)

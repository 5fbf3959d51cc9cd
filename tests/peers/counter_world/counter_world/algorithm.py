"""An algorithm of group RL: ratios by token, clipped alike on both sides."""

from agentworld.train.algorithms import Algorithm

ALGORITHM = Algorithm(importance="token", clip_low=0.1, clip_high=0.1)

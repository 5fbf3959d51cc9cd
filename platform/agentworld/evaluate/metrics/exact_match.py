"""The hardest question to a prediction: is it the truth, to every character that counts."""

from agentworld.domains.base import is_match

METRIC = is_match

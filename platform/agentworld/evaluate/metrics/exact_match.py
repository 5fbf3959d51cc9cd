"""Whether the normalised prediction equals the truth in every character."""

from agentworld.domains.base import is_match

METRIC = is_match

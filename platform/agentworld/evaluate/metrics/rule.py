"""The verdict of the domain's rules, which ignore details that no rule covers."""

from agentworld.domains.base import verdict_of

METRIC = verdict_of

"""What the domain's rules say, which forgive what no rule asks for."""

from agentworld.domains.base import verdict_of

METRIC = verdict_of

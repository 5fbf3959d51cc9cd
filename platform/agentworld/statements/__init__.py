"""Signing what the platform knows: edges, moves of aliases, uses of agents, heads of logs."""

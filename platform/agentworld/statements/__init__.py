"""Signing what the platform knows: edges, moves of aliases, heads of logs."""

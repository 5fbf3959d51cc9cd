"""Signs statements of the platform: edges, moves of aliases, log checkpoints."""

"""How good a world model or an agent is, with baselines and with intervals."""

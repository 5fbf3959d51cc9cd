"""Evaluates world models and agents, with baselines and confidence intervals."""

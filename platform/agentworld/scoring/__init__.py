"""Scores of observations and outcomes of episodes; rewards and reports use the same code."""

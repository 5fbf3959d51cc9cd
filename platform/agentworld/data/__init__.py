"""Collects trajectories from live environments or logs, and prepares samples in disjoint pools."""

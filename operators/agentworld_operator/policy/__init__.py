"""Decides the desired state and the status: pure functions of observations and of the time."""

"""A service's counts, metrics and spans."""

"""The manifests of a Simulator's objects, built by pure functions."""

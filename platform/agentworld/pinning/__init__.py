"""Pinning a world model with all that shapes its observations, and checking what is served."""

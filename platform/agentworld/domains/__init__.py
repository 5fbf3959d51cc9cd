"""Domains: prompts, parsers, scores and environments of each kind of world."""

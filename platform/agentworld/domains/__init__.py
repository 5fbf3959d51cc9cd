"""Domains: how a kind of world is prompted, parsed, scored and run; nothing else knows a kind."""

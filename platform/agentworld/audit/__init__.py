"""Answers questions about registered agents, served runs and their records."""

"""Runs, episodes and steps in a database: append-only and durable."""

from agentworld.ledger.ledger import Ledger

__all__ = ["Ledger"]

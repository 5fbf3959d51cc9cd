"""Fixtures: a service with a real ledger and a scripted engine, and its clients."""

from make.served import listen, log_lines, serve  # noqa: F401

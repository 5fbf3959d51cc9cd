"""Fixtures: a service with a real ledger and a scripted engine, and its clients."""

from make.served import listen, serve, told  # noqa: F401

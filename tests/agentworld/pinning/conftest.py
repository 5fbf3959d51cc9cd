"""A fixture: a service with a real ledger and a scripted engine."""

from make.served import serve  # noqa: F401

"""A service with a real ledger and an engine without a model, used as its clients use it."""

from make.served import listen, log_lines, serve  # noqa: F401

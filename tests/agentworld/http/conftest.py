"""A service with a real ledger and an engine without a model, used as its clients use it."""

from make.served import listen, serve, told  # noqa: F401

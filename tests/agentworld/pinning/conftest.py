"""A service on a real ledger with an engine of no model, reached as its clients reach it."""

from make.served import serve  # noqa: F401

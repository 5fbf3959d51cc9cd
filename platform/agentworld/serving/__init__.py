"""Serves pinned simulators: episodes over HTTP, every answered step in the ledger."""

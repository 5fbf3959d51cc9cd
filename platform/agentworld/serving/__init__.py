"""Serving a pinned simulator: episodes over HTTP, every answered step in the ledger."""

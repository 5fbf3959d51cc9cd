"""Talking to a model over HTTP; a model runs in a server of its own and is never imported."""

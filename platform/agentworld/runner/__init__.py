"""Runs any step: receipt, lock, code digest, progress, remote store and failures."""

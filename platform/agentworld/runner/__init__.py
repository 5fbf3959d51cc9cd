"""How any step runs: its receipt, lock, code digest, progress, remote store and failure."""

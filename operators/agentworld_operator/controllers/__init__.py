"""A controller for each of our kinds: reconciles by name, then writes one status."""

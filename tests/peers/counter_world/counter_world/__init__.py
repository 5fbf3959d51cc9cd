"""A world that counts: `add 3` and `show`."""

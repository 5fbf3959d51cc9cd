"""The page handlers."""

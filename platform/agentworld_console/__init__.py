"""The console: read-only web pages of an audit's data."""

"""The sources of an audit, as of a time."""

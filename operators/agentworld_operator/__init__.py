"""The operator: runs a pinned engine for each Simulator object, for the simulator service."""

"""Reports of a finished job: figures, targets, an HTML page."""

"""What a finished job is summed up in: figures, targets, an HTML page."""

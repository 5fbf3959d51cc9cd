"""What every HTTP service shares: authentication, limits, errors, the server."""

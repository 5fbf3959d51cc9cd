"""What every HTTP service of ours shares: who comes, limits on clients, errors, the server."""

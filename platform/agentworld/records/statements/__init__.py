"""What is signed beside the logs of runs: each kind in a file, and their table in `base`."""

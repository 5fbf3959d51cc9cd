"""Records on disk, many in a file: trajectories as JSON lines, pools of samples as Parquet."""

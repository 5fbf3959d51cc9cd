"""Files: trajectories as JSON lines, pools as Parquet, objects by their digest."""

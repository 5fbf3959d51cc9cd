"""What is kept in files: trajectories as JSON lines, pools as Parquet, bytes by their digest."""

"""Plans a training before it is scheduled: memory, time and cost."""

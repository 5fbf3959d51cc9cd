"""What a training would take, worked out before it is scheduled: memory, time and cost."""

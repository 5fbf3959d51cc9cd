"""What a service tells of itself: counts, metrics and spans."""

"""What kopf calls: thin, from a watch's event to what is worked on next."""

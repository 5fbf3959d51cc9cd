"""What the platform signs and how it is checked; this room knows no database and no HTTP."""

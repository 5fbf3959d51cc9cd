"""One file per revision; a released file never changes, and never imports the tables."""

"""One file for each revision; a released file never changes, and never imports the tables."""

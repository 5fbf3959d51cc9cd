"""One file for each revision; what is here is never changed, and never imports the tables."""

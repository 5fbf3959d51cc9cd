"""The steps of the pipelines: one table of declarations, and a module for the work of each."""

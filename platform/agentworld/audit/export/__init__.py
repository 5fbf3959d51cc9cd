"""The record as files for other programs."""

"""Exports of the records for other programs."""

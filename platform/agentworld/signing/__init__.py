"""Signed statements and their verification, without database or HTTP code."""

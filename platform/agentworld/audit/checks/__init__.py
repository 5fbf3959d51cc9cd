"""Checks that records match their signatures; each module checks what its name says."""

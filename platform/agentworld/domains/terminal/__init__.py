"""Terminals: keystrokes in, a screen of 40 lines out."""

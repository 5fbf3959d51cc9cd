"""Pins a world model with all settings that shape its observations, and verifies what is served."""

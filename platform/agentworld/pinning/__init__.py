"""Pins a world model with all settings that shape its observations; verifies it before serving."""

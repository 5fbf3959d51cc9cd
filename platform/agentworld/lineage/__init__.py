"""Registering what was made, so that a name and a version lead to bytes and to their origin."""

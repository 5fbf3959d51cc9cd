"""Turns to chat messages and back: the one renderer for training, evaluation and serving."""

"""The nouns: frozen, torch-free, the same shape in memory and on disk."""

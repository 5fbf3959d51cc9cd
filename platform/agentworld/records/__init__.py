"""Records: frozen, without torch, and with the same shape in memory and on disk."""

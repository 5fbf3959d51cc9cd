"""The protocols that agents already speak, one module each, over the same authorized service."""

"""The protocols of the service, one module for each, over the same authorized service."""

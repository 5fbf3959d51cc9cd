"""Kubernetes for the service, the pipelines and the operator: one client, and typed records."""

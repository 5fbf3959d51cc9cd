"""Kubernetes for the service, the pipelines and the operator: one client, one set of records."""

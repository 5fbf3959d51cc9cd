"""Kubernetes for the service, the pipelines and the operator: one client, and the records of
objects.
"""

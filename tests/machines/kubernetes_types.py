"""Validates objects by Kubernetes' own types: its Python client's, and the API server's schemas."""

import json
from types import SimpleNamespace
from typing import Any

from kubernetes.client import ApiClient
from kubernetes_validate import validate

_OLDEST, _NEWEST = "1.30", "1.37"
"""The bounds of the versions that the chart supports; the versions in between accept what both
accept.
"""


def check(job: dict[str, Any]) -> None:
    """Fails if a Job has an unknown field, or a value of another type."""
    client = ApiClient()
    parsed_job = client.deserialize(SimpleNamespace(data=json.dumps(job)), "V1Job")
    assert client.sanitize_for_serialization(parsed_job) == job


def check_schema(manifest: dict[str, Any]) -> None:
    """Fails if an API server would refuse it, or drop a field."""
    for version in (_OLDEST, _NEWEST):
        validate(manifest, version, strict=True)

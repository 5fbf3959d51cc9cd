"""Objects against the types of Kubernetes' own Python client, which know every field."""

import json
from types import SimpleNamespace
from typing import Any

from kubernetes.client import ApiClient


def check(job: dict[str, Any]) -> None:
    """Fails where a Job has a field that they do not know, or a value of another type."""
    client = ApiClient()
    read = client.deserialize(SimpleNamespace(data=json.dumps(job)), "V1Job")
    assert client.sanitize_for_serialization(read) == job

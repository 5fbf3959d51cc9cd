"""The one place that writes to a cluster and the only holder of its client.

Calls block. What the API server refuses, or an API server that is gone, is a ClusterError.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from agentworld.errors import ClusterError
from agentworld_operator.resources.names import OPERATOR
from agentworld_operator.resources.places import PLACES, typed

Object = dict[str, Any]

_SECONDS = (3.0, 10.0)
"""To connect, and to hear an answer."""
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_NOT_FOUND = 404


class Listed(NamedTuple):
    """Objects, as they were at one version of the namespace."""

    version: int
    objects: list[Object]


class Cluster:
    """One namespace, as this operator may see and change it."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.namespace = namespace
        self._client = client

    def all(self, kind: str, selector: str = "") -> Listed:
        """All objects of a kind, or those with these labels."""
        query = [("labelSelector", selector)] if selector else []
        found = self._call("GET", PLACES[kind].path(self.namespace), query=query)
        # A list leaves out what all of it are, and a watch does not.
        objects = [{**typed(kind), **each} for each in found["items"]]
        return Listed(int(found["metadata"]["resourceVersion"]), objects)

    def get(self, kind: str, name: str) -> Object | None:
        """An object; null where it is not there."""
        try:
            return self._call("GET", PLACES[kind].path(self.namespace, name))
        except ClusterError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def apply(self, manifest: Object) -> Object:
        """Makes an object be as built, whoever else wrote to it (server-side apply)."""
        path = PLACES[manifest["kind"]].path(self.namespace, manifest["metadata"]["name"])
        query = [("fieldManager", OPERATOR), ("force", "true")]
        return self._call("PATCH", path, body=manifest, query=query, content_type=_APPLY)

    def create(self, manifest: Object) -> Object:
        """A new object; a ClusterError of status 409 where one of its name is there."""
        return self._call("POST", PLACES[manifest["kind"]].path(self.namespace), body=manifest)

    def replace(self, manifest: Object) -> Object:
        """Writes an object that nobody wrote since it was read; else a ClusterError, status 409."""
        path = PLACES[manifest["kind"]].path(self.namespace, manifest["metadata"]["name"])
        return self._call("PUT", path, body=manifest)

    def is_going(self) -> bool:
        """Whether the namespace is being deleted, with all that is in it."""
        found = self.get("Namespace", self.namespace)
        return found is None or "deletionTimestamp" in found["metadata"]

    def write_status(self, kind: str, name: str, status: Object) -> Object:
        """Says what is so of a resource of ours."""
        path = PLACES[kind].path(self.namespace, name) + "/status"
        query = [("fieldManager", OPERATOR)]
        body = {"status": status}
        return self._call("PATCH", path, body=body, query=query, content_type=_MERGE)

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        query: list[tuple[str, str]] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        with _translated(f"{method} {path}"):
            response = self._client.call_api(
                path,
                method,
                query_params=query or [],
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=_SECONDS,
            )
            return cast("Object", json.loads(response.data))


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        raise ClusterError(f"{what}: {_message(error)}", status=error.status or 0) from error
    except (HTTPError, OSError) as error:
        raise ClusterError(
            f"{what}: the API server does not answer ({type(error).__name__})"
        ) from error


def _message(error: ApiException) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"{error.status} {error.reason}"

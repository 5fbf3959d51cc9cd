"""The one place that writes to a cluster and the only holder of its client.

Calls block. What the API server refuses, or an API server that is gone, is a ClusterError.
"""

from typing import NamedTuple

from agentworld_operator.resources.names import OPERATOR
from agentworld_operator.resources.places import PLACES, typed
from agentworld_pipelines.api_server import ApiServer, Object

_MERGE = "application/merge-patch+json"


class ObjectList(NamedTuple):
    """Objects, as they were at one version of the namespace."""

    version: int
    objects: list[Object]


class Cluster:
    """One namespace, as this operator may see and change it."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.namespace = namespace
        self._server = server

    def all(self, kind: str, selector: str = "") -> ObjectList:
        """All objects of a kind, or those with these labels."""
        query = [("labelSelector", selector)] if selector else []
        listing = self._server.call("GET", PLACES[kind].path(self.namespace), query=query)
        # A list leaves out what all of it are, and a watch does not.
        objects = [{**typed(kind), **each} for each in listing["items"]]
        return ObjectList(int(listing["metadata"]["resourceVersion"]), objects)

    def get(self, kind: str, name: str) -> Object | None:
        """An object; null where it is not there."""
        return self._server.find(PLACES[kind].path(self.namespace, name))

    def apply(self, manifest: Object) -> Object:
        """Makes an object be as built, whoever else wrote to it (server-side apply)."""
        return self._server.apply(self._path(manifest), manifest, OPERATOR)

    def create(self, manifest: Object) -> Object:
        """A new object; a ClusterError of status 409 where one of its name is there."""
        return self._server.call(
            "POST", PLACES[manifest["kind"]].path(self.namespace), body=manifest
        )

    def replace(self, manifest: Object) -> Object:
        """Writes an object that nobody wrote since it was read; else a ClusterError, status 409."""
        return self._server.call("PUT", self._path(manifest), body=manifest)

    def is_going(self) -> bool:
        """Whether the namespace is being deleted, with all that is in it."""
        namespace = self.get("Namespace", self.namespace)
        return namespace is None or "deletionTimestamp" in namespace["metadata"]

    def write_status(self, kind: str, name: str, status: Object) -> Object:
        """Says what is so of a resource of ours."""
        path = PLACES[kind].path(self.namespace, name) + "/status"
        query = [("fieldManager", OPERATOR)]
        return self._server.call(
            "PATCH", path, body={"status": status}, query=query, content_type=_MERGE
        )

    def _path(self, manifest: Object) -> str:
        return PLACES[manifest["kind"]].path(self.namespace, manifest["metadata"]["name"])

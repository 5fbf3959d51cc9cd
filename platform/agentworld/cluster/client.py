"""The one client of Kubernetes API servers; its failures become ours.

Calls block. What the API server refuses, or an API server that is gone, is a ClusterError. Its
message has the API server's own words, which are for operators and not for who opens runs.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agentworld.cluster.api_resources import API_RESOURCES, Object, type_fields
from agentworld.errors import ClusterError, InputError, UnknownPath

if TYPE_CHECKING:
    from kubernetes.client import Configuration as Configuration

# `kubernetes` takes a second to import, and only who asks a cluster needs it.

Query = list[tuple[str, str]]

NOT_FOUND, EXISTS = 404, 409
_SECONDS = (3.0, 10.0)
"""To connect, and to hear an answer."""
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


def configuration(kubeconfig: Path | None, *, or_current: bool = False) -> "Configuration":
    """Reads a kubeconfig, or the pod's own service account where none is named.

    `or_current` takes the user's current kubeconfig outside of a pod. Raises InputError where no
    cluster is named.
    """
    from kubernetes import client, config  # noqa: PLC0415

    result = client.Configuration()
    result.retries = 0  # the caller decides whether to ask again
    try:
        if kubeconfig:
            config.load_kube_config(str(kubeconfig), client_configuration=result)
        else:
            try:
                config.load_incluster_config(client_configuration=result)
            except config.ConfigException:
                if not or_current:
                    raise
                config.load_kube_config(client_configuration=result)
    except config.ConfigException as error:
        variable = "KUBECONFIG" if or_current else "AGENTWORLD_KUBECONFIG"
        raise InputError(
            f"there is no cluster to ask ({error}); run in one, or set {variable}"
        ) from error
    return result


class ApiServer:
    """Any object of any namespace, by its path."""

    def __init__(self, client_configuration: "Configuration") -> None:
        from kubernetes.client import ApiClient  # noqa: PLC0415

        self._client = ApiClient(client_configuration)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        query: Query | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """What the API server answers; raises ClusterError."""
        answer = self._ask(method, path, body=body, query=query, content_type=content_type)
        try:
            return cast("Object", json.loads(answer))
        except ValueError as error:
            raise ClusterError(f"{method} {path}: the answer is no JSON") from error

    def text(self, path: str, query: Query | None = None) -> str:
        """What is no object, as the log of a pod; raises ClusterError."""
        answer = self._ask("GET", path, query=query, accept="*/*")
        return answer.decode(errors="replace")

    def find(self, path: str) -> Object | None:
        """An object; null where the API server says that it is not there. Raises ClusterError."""
        try:
            return self.call("GET", path)
        except UnknownPath:
            raise
        except ClusterError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def _ask(
        self,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        query: Query | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        with _translate_errors(f"{method} {path}"):
            response = self._client.call_api(
                path,
                method,
                query_params=query or [],
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,  # else it logs the answer, which may repeat a token
                _return_http_data_only=True,
                _request_timeout=_SECONDS,
            )
            return cast("bytes", response.data)


class ObjectList(NamedTuple):
    """Objects, as they were at one version of the namespace."""

    version: int
    objects: list[Object]


class Cluster:
    """The objects of one namespace, by kind and name."""

    def __init__(self, server: ApiServer, namespace: str, manager: str) -> None:
        """`manager` owns the fields that are written here."""
        self.namespace = namespace
        self._server = server
        self._manager = manager

    def all(self, kind: str, selector: str = "", *, fields: str = "") -> ObjectList:
        """All objects of a kind, or those with these labels or fields."""
        selectors = {"labelSelector": selector, "fieldSelector": fields}
        query = [(name, value) for name, value in selectors.items() if value]
        listing = self._server.call("GET", self._path(kind), query=query)
        # A list leaves out what all of it are, and a watch does not.
        objects = [{**type_fields(kind), **item} for item in listing["items"]]
        return ObjectList(int(listing["metadata"]["resourceVersion"]), objects)

    def get(self, kind: str, name: str) -> Object | None:
        """An object; null where it is not there."""
        return self._server.find(self._path(kind, name))

    def apply(self, manifest: Object) -> Object:
        """Makes an object be as built, whoever else wrote to it (server-side apply)."""
        query = [("fieldManager", self._manager), ("force", "true")]
        path = self._path_of(manifest)
        return self._server.call("PATCH", path, body=manifest, query=query, content_type=_APPLY)

    def create(self, manifest: Object) -> Object:
        """A new object; a ClusterError of status 409 where one of its name is there."""
        return self._server.call("POST", self._path(manifest["kind"]), body=manifest)

    def merge(self, manifest: Object) -> Object:
        """Changes the fields that the manifest has, and removes those that are null in it."""
        return self._merge(self._path_of(manifest), manifest)

    def replace(self, manifest: Object) -> Object:
        """Writes an object that nobody wrote since it was read; else a ClusterError, status 409."""
        return self._server.call("PUT", self._path_of(manifest), body=manifest)

    def delete(self, kind: str, name: str, options: Object) -> None:
        """Deletes an object as the DeleteOptions say; it may take a while until it is gone."""
        self._server.call("DELETE", self._path(kind, name), body=options)

    def log(self, pod: str, query: Query) -> str:
        """What a pod's container wrote."""
        return self._server.text(f"{self._path('Pod', pod)}/log", query)

    def is_terminating(self) -> bool:
        """Whether the namespace is being deleted, with all that is in it."""
        namespace = self.get("Namespace", self.namespace)
        return namespace is None or "deletionTimestamp" in namespace["metadata"]

    def write_status(self, kind: str, name: str, status: Object) -> Object:
        """Says what is so of a resource of ours."""
        return self._merge(f"{self._path(kind, name)}/status", {"status": status})

    def _merge(self, path: str, body: Object) -> Object:
        query = [("fieldManager", self._manager)]
        return self._server.call("PATCH", path, body=body, query=query, content_type=_MERGE)

    def _path(self, kind: str, name: str = "") -> str:
        return API_RESOURCES[kind].path(self.namespace, name)

    def _path_of(self, manifest: Object) -> str:
        return self._path(manifest["kind"], manifest["metadata"]["name"])


@contextmanager
def _translate_errors(request: str) -> Iterator[None]:
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    try:
        yield
    except ApiException as error:
        status = _status(error.body)
        message = status.get("message") or f"{error.status} {error.reason}"
        if error.status == NOT_FOUND and not _names_an_object(status):
            raise UnknownPath(f"{request}: {message}") from error
        raise ClusterError(f"{request}: {message}", status=error.status or 0) from error
    except (HTTPError, OSError) as error:
        raise ClusterError(
            f"{request}: the API server does not answer ({type(error).__name__})"
        ) from error


def _status(body: Any) -> Object:
    """The Status that an API server answers with; empty where the answer is none."""
    try:
        status = json.loads(body)
    except (TypeError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}


def _names_an_object(status: Object) -> bool:
    """Whether the answer says which object is not there.

    One that has just begun answers `404 page not found` for every custom resource until it has
    read their definitions.
    """
    details = status.get("details")
    return isinstance(details, dict) and bool(details.get("name"))

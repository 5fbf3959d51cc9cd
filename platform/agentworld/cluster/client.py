"""The only client of Kubernetes API servers.

Calls block. A refused request or an unreachable API server raises ClusterError. Its message quotes
the API server and is for operators; do not show it to agents.
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

# `kubernetes` takes a second to import, so it is imported on first use.

Query = list[tuple[str, str]]

NOT_FOUND, EXISTS = 404, 409
_SECONDS = (3.0, 10.0)
"""To connect, and to receive a response."""
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


def configuration(kubeconfig: Path | None, *, or_current: bool = False) -> "Configuration":
    """Loads a kubeconfig, or the pod's own service account if none is given.

    With `or_current`, the user's current kubeconfig is used outside of a pod. Raises InputError if
    there is no cluster to connect to.
    """
    from kubernetes import client, config  # noqa: PLC0415

    result = client.Configuration()
    result.retries = 0  # the caller decides about retries
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
            f"no cluster is configured ({error}); run in a cluster, or set {variable}"
        ) from error
    return result


class ApiServer:
    """Access to any object in any namespace, by its path."""

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
        """Sends a request and returns the response; raises ClusterError."""
        answer = self._ask(method, path, body=body, query=query, content_type=content_type)
        try:
            return cast("Object", json.loads(answer))
        except ValueError as error:
            raise ClusterError(f"{method} {path}: the response is not JSON") from error

    def text(self, path: str, query: Query | None = None) -> str:
        """A response that is text, such as the log of a pod; raises ClusterError."""
        answer = self._ask("GET", path, query=query, accept="*/*")
        return answer.decode(errors="replace")

    def find(self, path: str) -> Object | None:
        """An object; null if it does not exist. Raises ClusterError."""
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
                _preload_content=False,  # otherwise it logs the response, which may contain a token
                _return_http_data_only=True,
                _request_timeout=_SECONDS,
            )
            return cast("bytes", response.data)


class ObjectList(NamedTuple):
    """Objects, with the resource version of the list."""

    version: int
    objects: list[Object]


class Cluster:
    """The objects of one namespace, by kind and name."""

    def __init__(self, server: ApiServer, namespace: str, manager: str) -> None:
        """`manager` is the field manager of the writes."""
        self.namespace = namespace
        self._server = server
        self._manager = manager

    def all(self, kind: str, selector: str = "", *, fields: str = "") -> ObjectList:
        """All objects of a kind, or those that match these label and field selectors."""
        selectors = {"labelSelector": selector, "fieldSelector": fields}
        query = [(name, value) for name, value in selectors.items() if value]
        listing = self._server.call("GET", self._path(kind), query=query)
        # a list leaves out the type fields of its items, and a watch does not
        objects = [{**type_fields(kind), **item} for item in listing["items"]]
        return ObjectList(int(listing["metadata"]["resourceVersion"]), objects)

    def get(self, kind: str, name: str) -> Object | None:
        """An object; null if it does not exist."""
        return self._server.find(self._path(kind, name))

    def apply(self, manifest: Object) -> Object:
        """Applies an object with server-side apply, and takes over conflicting fields."""
        query = [("fieldManager", self._manager), ("force", "true")]
        path = self._path_of(manifest)
        return self._server.call("PATCH", path, body=manifest, query=query, content_type=_APPLY)

    def create(self, manifest: Object) -> Object:
        """Creates an object; raises ClusterError with status 409 if its name is taken."""
        return self._server.call("POST", self._path(manifest["kind"]), body=manifest)

    def merge(self, manifest: Object) -> Object:
        """Applies a merge patch: sets the given fields, and removes those that are null."""
        return self._merge(self._path_of(manifest), manifest)

    def replace(self, manifest: Object) -> Object:
        """Replaces an object; ClusterError with status 409 if it changed since it was read."""
        return self._server.call("PUT", self._path_of(manifest), body=manifest)

    def delete(self, kind: str, name: str, options: Object) -> None:
        """Deletes an object with these DeleteOptions; the deletion may take a while."""
        self._server.call("DELETE", self._path(kind, name), body=options)

    def log(self, pod: str, query: Query) -> str:
        """The log of a pod's container."""
        return self._server.text(f"{self._path('Pod', pod)}/log", query)

    def is_terminating(self) -> bool:
        """Whether the namespace is being deleted."""
        namespace = self.get("Namespace", self.namespace)
        return namespace is None or "deletionTimestamp" in namespace["metadata"]

    def write_status(self, kind: str, name: str, status: Object) -> Object:
        """Writes the status of a custom resource."""
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
    """The Status object of an error response; empty if the body has none."""
    try:
        status = json.loads(body)
    except (TypeError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}


def _names_an_object(status: Object) -> bool:
    """Whether a 404 names the missing object.

    An API server that just started answers `404 page not found` for all custom resources until it
    has loaded their definitions.
    """
    details = status.get("details")
    return isinstance(details, dict) and bool(details.get("name"))

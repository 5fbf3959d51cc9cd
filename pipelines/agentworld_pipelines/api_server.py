"""How a Kubernetes API server is reached and asked; its failures become ours.

Calls block. What the API server refuses, or an API server that is gone, is a ClusterError.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from agentworld.errors import ClusterError, InputError

Object = dict[str, Any]
Query = list[tuple[str, str]]

MANAGER = "agentworld.dev/pipelines"
"""Who writes what a pipeline writes, as its objects tell."""
NOT_FOUND, EXISTS = 404, 409
_NOT_ALLOWED = (401, 403)
_SECONDS = (3.0, 10.0)
"""To connect, and to hear an answer."""
_APPLY = "application/apply-patch+yaml"

_Answer = TypeVar("_Answer")


def configuration(kubeconfig: Path | None) -> Configuration:
    """The pod's own service account, or as a kubeconfig says; raises InputError without either."""
    client_configuration = Configuration()
    client_configuration.retries = 0  # who asks decides whether to ask again
    try:
        if kubeconfig:
            config.load_kube_config(str(kubeconfig), client_configuration=client_configuration)
        else:
            config.load_incluster_config(client_configuration=client_configuration)
    except config.ConfigException as error:
        raise InputError(
            f"there is no cluster to ask ({error}); run in one, or set AGENTWORLD_KUBECONFIG"
        ) from error
    return client_configuration


class ApiServer:
    """Any object of any namespace, by its path."""

    def __init__(self, client_configuration: Configuration) -> None:
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
        return cast("Object", json.loads(answer))

    def text(self, path: str, query: Query | None = None) -> str:
        """What is no object, as the log of a pod; raises ClusterError."""
        answer = self._ask("GET", path, query=query, accept="*/*")
        return answer.decode(errors="replace")

    def find(self, path: str) -> Object | None:
        """An object; null where it is not there. Raises ClusterError."""
        try:
            return self.call("GET", path)
        except ClusterError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def apply(self, path: str, manifest: Object, manager: str) -> Object:
        """Makes an object be as built, whoever else wrote to it (server-side apply)."""
        query = [("fieldManager", manager), ("force", "true")]
        return self.call("PATCH", path, body=manifest, query=query, content_type=_APPLY)

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
            return cast("bytes", response.data)


def patiently(
    ask: Callable[[], _Answer],
    *,
    until: float,
    every_seconds: float,
    tell: Callable[[str], None],
    granted: bool = False,
) -> _Answer:
    """Asks again while the API server is gone, which is told once; raises ClusterError.

    One that begins again answers before it knows accounts and Roles. So where the same was asked
    before, and answered (`granted`), a refusal is waited for too. `until` is a monotonic time.
    """
    is_reported = False
    while True:
        try:
            return ask()
        except ClusterError as error:
            may_pass = is_unreachable(error) or (granted and error.status in _NOT_ALLOWED)
            if not may_pass or time.monotonic() >= until:
                raise
            if not is_reported:
                tell(f"{error}; waiting for it")
                is_reported = True
        time.sleep(every_seconds)


def is_unreachable(error: ClusterError) -> bool:
    """Whether nobody answered; a conflict is an answer, by which a webhook refuses as well."""
    return error.retryable and error.status != EXISTS


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

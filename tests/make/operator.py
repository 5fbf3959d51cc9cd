"""Operators with a real API server: a namespace with their rights, and their processes."""

import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from kubernetes.client import ApiClient
from prometheus_client import CollectorRegistry, Gauge, start_http_server

import make.chart
from agentworld.cluster.api_resources import API_RESOURCES, ApiResource, type_fields
from agentworld.cluster.client import ApiServer, Cluster, Query
from agentworld.cluster.names import OPERATOR
from agentworld.errors import ClusterError
from agentworld.records.base import Digest
from agentworld_operator.children import engine
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS
from machines.control_plane import ControlPlane
from machines.forked import Forked
from waiting import DEADLINE, wait_for

Object = dict[str, Any]

MERGE = "application/merge-patch+json"

# The tests' server is older than the operator supports.
OLDER_BUDGETS = API_RESOURCES["PodDisruptionBudget"]._replace(api_version="policy/v1beta1")


@contextmanager
def older_budgets() -> Iterator[None]:
    """In the block, this process builds engines' budgets for the tests' server."""
    resource, disruptions = API_RESOURCES["PodDisruptionBudget"], dict(engine.DISRUPTIONS)
    API_RESOURCES["PodDisruptionBudget"] = OLDER_BUDGETS
    del engine.DISRUPTIONS["unhealthyPodEvictionPolicy"]
    try:
        yield
    finally:
        API_RESOURCES["PodDisruptionBudget"] = resource
        engine.DISRUPTIONS.update(disruptions)


_RBAC = "rbac.authorization.k8s.io/v1"
RIGHTS = {
    "ServiceAccount": ApiResource("v1", "serviceaccounts"),
    "Role": ApiResource(_RBAC, "roles"),
    "RoleBinding": ApiResource(_RBAC, "rolebindings"),
    "ClusterRole": ApiResource(_RBAC, "clusterroles", namespaced=False),
    "ClusterRoleBinding": ApiResource(_RBAC, "clusterrolebindings", namespaced=False),
}
"""The API groups of the chart's RBAC objects."""


class Service:
    """Reports open episodes as the simulator service does."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        help_text = "Episodes that are open."
        self._open = Gauge("agentworld_open_episodes", help_text, ["simulator"], registry=registry)
        self._server, _ = start_http_server(0, "127.0.0.1", registry)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def tell(self, digest: Digest, number: int) -> None:
        self._open.labels(digest).set(number)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Operator:
    """An operator in a separate process."""

    def __init__(self, log: Path, process: subprocess.Popen[bytes] | Forked) -> None:
        self.process = process
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def leads(self) -> bool:
        assert self.process.poll() is None, self.said
        return " leads\n" in self.said

    def stop(self) -> int:
        """Stops it as a cluster stops a pod."""
        self.process.terminate()
        return self.process.wait(DEADLINE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Namespace(Cluster):
    """Everything in one namespace, as its administrator sees and changes it."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        super().__init__(ApiServer(client.configuration), namespace, OPERATOR)
        self._client = client

    def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = MERGE,
        query: Query | None = None,
    ) -> Object:
        kind = content_type if method == "PATCH" else "application/json"
        return self._server.call(method, path, body=body, query=query, content_type=kind)

    def change(self, name: str, **serving: object) -> None:
        """Changes how a Simulator is served."""
        self.patch("Simulator", name, {"spec": {"serving": serving}})

    def patch(self, kind: str, name: str, body: Object) -> None:
        self.call("PATCH", API_RESOURCES[kind].path(self.namespace, name), body)

    def delete(self, kind: str, name: str) -> None:
        self._server.call("DELETE", API_RESOURCES[kind].path(self.namespace, name))

    def end_lease(self) -> None:
        """Expires the lease of a killed operator."""
        self.delete("Lease", OPERATOR)

    def watch(self, kind: str, stop: Event) -> Iterator[Object]:
        """Yields every new or changed object, until `stop` is set."""
        path = API_RESOURCES[kind].path(self.namespace)
        while not stop.is_set():
            answer = self._client.call_api(
                path,
                "GET",
                query_params=[("watch", "true"), ("timeoutSeconds", "2")],
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
            )
            remainder = b""
            for piece in answer.stream(1 << 16):
                *lines, remainder = (remainder + piece).split(b"\n")
                yield from (json.loads(line)["object"] for line in lines)

    def conditions(self, name: str, kind: str = "Simulator") -> dict[str, tuple[str, str]]:
        resource = self.get(kind, name)
        conditions = (resource or {}).get("status", {}).get("conditions", ())
        return {item["type"]: (item["status"], item["reason"]) for item in conditions}

    def names(self, kind: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.all(kind).objects)


def define(cluster: ControlPlane) -> None:
    """Registers the custom resources of this release."""
    namespace = Namespace(cluster.client, "default")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for kind in KINDS:
        namespace.call("POST", path, crd(kind))

    def is_served() -> bool:
        try:
            return not any(namespace.all(kind.kind).objects for kind in KINDS)
        except ClusterError:
            return False

    wait_for(is_served)


# A plain kopf operator also writes to the objects that it watches.
PLAIN_RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def new_namespace(cluster: ControlPlane, *, plain: bool = False) -> Namespace:
    """A namespace with the chart's service accounts and exactly their rights."""
    name = f"test-{secrets.token_hex(4)}"
    namespace = Namespace(cluster.client, name)
    namespace.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for manifest in make.chart.objects(namespace=name):
        if manifest["kind"] in RIGHTS:
            if plain and manifest["kind"] == "Role":
                manifest["rules"] = PLAIN_RULES
            namespace.call("POST", RIGHTS[manifest["kind"]].path(name), manifest)
    namespace.create({**type_fields("Secret"), "metadata": {"name": "agentworld-webhook"}})
    return namespace


def token(namespace: Namespace, account: str = "agentworld-operator") -> str:
    """The token of a service account."""
    path = f"/api/v1/namespaces/{namespace.namespace}/serviceaccounts/{account}/token"
    response = namespace.call("POST", path, {"spec": {"audiences": []}})
    return str(response["status"]["token"])


def kubeconfig(
    cluster: ControlPlane, namespace: Namespace, account: str = "agentworld-operator"
) -> Path:
    """The kubeconfig of a service account."""
    return cluster.kubeconfig_of(token(namespace, account))


def variables(settings: Mapping[str, object]) -> dict[str, str]:
    """The environment variables of an operator with these settings."""
    return {f"AGENTWORLD_{name.upper()}": str(value) for name, value in settings.items()}


def settings(cluster: ControlPlane, namespace: Namespace, service: Service) -> Object:
    """The settings of the namespace's operator, without its name."""
    return {
        "namespace": namespace.namespace,
        "service_url": service.url,
        "verifier_image": "registry.example/control@sha256:1",
        "kubeconfig": kubeconfig(cluster, namespace),
    }

"""Operators before a real API server: a namespace with their rights, and their processes."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from agentworld.errors import ClusterError
from agentworld.records.base import Digest
from agentworld_operator.cluster import Cluster
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.places import PLACES, typed
from agentworld_operator.resources.write import KINDS
from control_plane import ControlPlane
from waiting import wait_for

Object = dict[str, Any]

MERGE = "application/merge-patch+json"

# The tests' server is older than what the operator is made for.
OLDER_BUDGETS = PLACES["PodDisruptionBudget"]._replace(api_version="policy/v1beta1")

# What the operator may, and no more.
RULES = [
    {"apiGroups": ["agentworld.dev"], "resources": ["simulators"], "verbs": ["get"]},
    {
        "apiGroups": ["agentworld.dev"],
        "resources": ["simulators", "simulatoraliases"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": ["agentworld.dev"],
        "resources": ["simulators/status", "simulatoraliases/status"],
        "verbs": ["patch"],
    },
    {"apiGroups": ["agentworld.dev"], "resources": ["simulators/finalizers"], "verbs": ["update"]},
    {
        "apiGroups": ["", "apps", "policy"],
        "resources": ["configmaps", "services", "deployments", "poddisruptionbudgets"],
        "verbs": ["list", "watch", "create", "patch"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "update"],
    },
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
]
# What the service of its simulators may.
SERVICE_RULES = [
    {"apiGroups": ["agentworld.dev"], "resources": ["simulators"], "verbs": ["get", "list"]},
    {"apiGroups": ["agentworld.dev"], "resources": ["simulatoraliases"], "verbs": ["get"]},
]
# Of what no namespace holds.
CLUSTER_RULES = [
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "verbs": ["get", "update"],
    },
]


class Service:
    """Tells of open episodes as the simulator service does."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        about = "Episodes that are open."
        self._open = Gauge("agentworld_open_episodes", about, ["simulator"], registry=registry)
        self._server, _ = start_http_server(0, "127.0.0.1", registry)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def tell(self, digest: Digest, number: int) -> None:
        self._open.labels(digest).set(number)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Operator:
    """A process of its own."""

    def __init__(
        self, log: Path, settings: Mapping[str, object], module: str = "older_operator"
    ) -> None:
        told = {f"AGENTWORLD_{name.upper()}": str(value) for name, value in settings.items()}
        self._log = log
        with log.open("ab") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module],
                env={**os.environ, **told, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=written,
                stderr=written,
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def leads(self) -> bool:
        assert self.process.poll() is None, self.said
        return " leads\n" in self.said

    def stop(self) -> int:
        """As a cluster stops a pod."""
        self.process.terminate()
        return self.process.wait(20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Namespace(Cluster):
    """Everything in one namespace, as its administrator sees and changes it."""

    def call(self, method: str, path: str, body: Object, content_type: str = MERGE) -> Object:
        kind = content_type if method == "PATCH" else "application/json"
        return self._call(method, path, body=body, content_type=kind)

    def change(self, name: str, **serving: object) -> None:
        """Of a Simulator, how it is served."""
        self.patch("Simulator", name, {"spec": {"serving": serving}})

    def patch(self, kind: str, name: str, body: Object) -> None:
        self.call("PATCH", PLACES[kind].path(self.namespace, name), body)

    def delete(self, kind: str, name: str) -> None:
        self._call("DELETE", PLACES[kind].path(self.namespace, name))

    def watch(self, kind: str, stop: Event) -> Iterator[Object]:
        """Every object that is new or another one, until this is set."""
        path = PLACES[kind].path(self.namespace)
        while not stop.is_set():
            answer = self._client.call_api(
                path,
                "GET",
                query_params=[("watch", "true"), ("timeoutSeconds", "2")],
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
            )
            rest = b""
            for piece in answer.stream(1 << 16):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (json.loads(line)["object"] for line in lines)

    def conditions(self, name: str, kind: str = "Simulator") -> dict[str, tuple[str, str]]:
        found = self.get(kind, name)
        told = (found or {}).get("status", {}).get("conditions", ())
        return {each["type"]: (each["status"], each["reason"]) for each in told}

    def names(self, kind: str) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.all(kind).objects)


def define(cluster: ControlPlane) -> None:
    """Makes the custom resources of this release known."""
    known = Namespace(cluster.client, "default")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for kind in KINDS:
        known.call("POST", path, crd(kind))

    def is_served() -> bool:
        try:
            return not any(known.all(kind.kind).objects for kind in KINDS)
        except ClusterError:
            return False

    wait_for(is_served)


# A plain kopf operator also writes to what it watches.
PLAIN_RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def new_namespace(cluster: ControlPlane, *, plain: bool = False) -> Namespace:
    """With the service accounts of the operator and of the service, and just their rights."""
    name = f"test-{secrets.token_hex(4)}"
    made = Namespace(cluster.client, name)
    made.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    operator = _account(made, "operator", PLAIN_RULES if plain else RULES)
    _account(made, "service", SERVICE_RULES)
    made.create({**typed("Secret"), "metadata": {"name": "agentworld-webhook"}})
    metadata = {"metadata": {"name": name}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    made.call("POST", f"{_RIGHTS}/clusterroles", metadata | {"rules": CLUSTER_RULES})
    bound = metadata | {"roleRef": role, "subjects": [operator]}
    made.call("POST", f"{_RIGHTS}/clusterrolebindings", bound)
    return made


_RIGHTS = "/apis/rbac.authorization.k8s.io/v1"


def _account(made: Namespace, name: str, rules: list[Object]) -> Object:
    """A service account that may do this; as who is bound to a role."""
    rights, metadata = f"{_RIGHTS}/namespaces/{made.namespace}", {"metadata": {"name": name}}
    account = {"kind": "ServiceAccount", "name": name, "namespace": made.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    made.call("POST", f"/api/v1/namespaces/{made.namespace}/serviceaccounts", metadata)
    made.call("POST", f"{rights}/roles", metadata | {"rules": rules})
    bound = metadata | {"roleRef": role, "subjects": [account]}
    made.call("POST", f"{rights}/rolebindings", bound)
    return account


def kubeconfig(cluster: ControlPlane, namespace: Namespace, account: str = "operator") -> Path:
    """Of a service account."""
    path = f"/api/v1/namespaces/{namespace.namespace}/serviceaccounts/{account}/token"
    made = namespace.call("POST", path, {"spec": {"audiences": []}})
    return cluster.kubeconfig_of(made["status"]["token"])


def settings(cluster: ControlPlane, namespace: Namespace, service: Service) -> Object:
    """What an operator of the namespace is told, but for its name."""
    return {
        "namespace": namespace.namespace,
        "service_url": service.url,
        "verifier_image": "registry.example/control@sha256:1",
        "kubeconfig": kubeconfig(cluster, namespace),
    }

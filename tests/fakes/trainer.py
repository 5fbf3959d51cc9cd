"""Kubeflow's Trainer for TrainJobs of a real API server, whose states a test sets.

No released Trainer is here: the TrainJobs follow its types, and its actions (status, pods, their
logs) are simulated. A kubelet that only serves logs represents its nodes.
"""

import secrets
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from agentworld.cluster.client import ApiServer, configuration
from fakes import definitions
from fakes.kinds_of_others import definition_of
from machines.control_plane import ControlPlane
from waiting import wait_for

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
NODE = "trains"
ACCOUNT = "pipeline-runner"
_GUIDES = Path(__file__).parents[2] / "docs/guides"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Kubelet:
    """Serves the logs of the pods of one node, as an API server requests them from a kubelet."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.logs: dict[str, list[tuple[datetime, str]]] = {}
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                text = kubelet.read(url.path.split("/")[3], parse_qs(url.query)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cluster.certificate, cluster.certificate.with_suffix(".key"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def say(self, pod: str, line: str) -> None:
        """Logs a line as a process of this pod."""
        self.logs.setdefault(pod, []).append((datetime.now(UTC), line))

    def read(self, pod: str, query: dict[str, list[str]]) -> str:
        """With timestamps and a start time, if requested."""
        since = datetime.fromisoformat(query.get("sinceTime", ["1970-01-01T00:00:00Z"])[0])
        lines = [(t, line) for t, line in self.logs.get(pod, ()) if t >= since]
        return "".join(f"{t.isoformat().replace('+00:00', 'Z')} {line}\n" for t, line in lines)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Trainer:
    """The TrainJobs of one namespace, and their states."""

    def __init__(self, cluster: ControlPlane, kubelet: Kubelet, namespace: str) -> None:
        self.server = ApiServer(configuration(cluster.kubeconfig))
        self.kubelet = kubelet
        self.namespace = namespace
        self.path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def jobs(self) -> list[Object]:
        return list(self.server.call("GET", self.path)["items"])

    def job(self) -> Object:
        """The only TrainJob, as soon as it exists."""
        jobs: list[Object] = []
        wait_for(lambda: jobs.extend(self.jobs()) or jobs)
        (job,) = jobs
        return job

    def condition(self, kind: str, reason: str, message: str = "", status: str = "True") -> None:
        """Sets a condition of the only TrainJob."""
        job = self.job()
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        self.write_status(job, {"conditions": [condition]})

    def write_status(self, job: Object, status: Object) -> None:
        path = f"{self.path}/{job['metadata']['name']}/status"
        self.server.call("PATCH", path, body={"status": status}, content_type=MERGE)

    def pod(self, index: int, *, node: str = NODE, replicated_job: str = "node") -> str:
        """A running pod of the only TrainJob; returns its name."""
        job = self.job()["metadata"]["name"]
        name = f"{job}-{replicated_job}-0-{index}-{secrets.token_hex(3)}"
        labels = {
            "jobset.sigs.k8s.io/jobset-name": job,
            "jobset.sigs.k8s.io/replicatedjob-name": replicated_job,
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        spec = {"nodeName": node, "containers": [{"name": "node", "image": "trains"}]}
        manifest = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        self.server.call("POST", self.pods, body=manifest)
        self.write_pod(name, {"phase": "Running"})
        return name

    def write_pod(self, name: str, status: Object) -> None:
        path = f"{self.pods}/{name}/status"
        self.server.call("PATCH", path, body={"status": status}, content_type=MERGE)

    def end_container(self, pod: str, **terminated: object) -> None:
        """Ends the pod's container with a failure."""
        container = {"name": "node", "image": "trains", "imageID": "", "ready": False}
        container |= {"restartCount": 0, "state": {"terminated": terminated}}
        self.write_pod(pod, {"phase": "Failed", "containerStatuses": [container]})


def define(cluster: ControlPlane) -> None:
    """Registers TrainJobs."""
    definitions.define(ApiServer(configuration(cluster.kubeconfig)), definition_of("TrainJob"))


@contextmanager
def node(cluster: ControlPlane) -> Iterator[Kubelet]:
    """A node whose pods a test sets to running."""
    kubelet = Kubelet(cluster)
    server = ApiServer(configuration(cluster.kubeconfig))
    server.call("POST", "/api/v1/nodes", body={"metadata": {"name": NODE}})
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
    }
    path = f"/api/v1/nodes/{NODE}/status"
    server.call("PATCH", path, body={"status": status}, content_type=MERGE)
    try:
        yield kubelet
    finally:
        server.call("DELETE", f"/api/v1/nodes/{NODE}")
        kubelet.close()


def new_namespace(cluster: ControlPlane) -> tuple[str, Path]:
    """A namespace with the guide's Role for the pipelines' account; returns the account's
    kubeconfig.
    """
    server = ApiServer(configuration(cluster.kubeconfig))
    name = f"trains-{secrets.token_hex(4)}"
    server.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/serviceaccounts"
    server.call("POST", path, body={"metadata": {"name": ACCOUNT}})

    def has_token() -> object:
        account = server.find(f"{path}/default")
        return account and account.get("secrets")

    wait_for(has_token)  # the controllers create the pods' account, and no pod is accepted before
    server.call("POST", f"{_RBAC}/namespaces/{name}/roles", body=guide_role())
    bind(server, name)
    response = server.call("POST", f"{path}/{ACCOUNT}/token", body={"spec": {"audiences": []}})
    return name, cluster.kubeconfig_of(response["status"]["token"])


def bind(server: ApiServer, namespace: str) -> None:
    """Binds the Role to the account of the pipelines."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"}
    binding = {
        "metadata": {"name": ACCOUNT},
        "roleRef": {**reference, "name": guide_role()["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    server.call("POST", f"{_RBAC}/namespaces/{namespace}/rolebindings", body=binding)


def unbind(server: ApiServer, namespace: str) -> None:
    """Removes the binding."""
    server.call("DELETE", f"{_RBAC}/namespaces/{namespace}/rolebindings/{ACCOUNT}")


def guide_role(name: str = "agentworld-stages") -> Object:
    """A Role, as a guide shows it."""
    pages = [(_GUIDES / page).read_text() for page in ("several-nodes.md", "mlflow.md")]
    blocks = "".join(pages).split("```")
    (role,) = [block for block in blocks if f"name: {name}" in block]
    return dict(yaml.safe_load(role.removeprefix("yaml\n")))

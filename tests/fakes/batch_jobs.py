"""Jobs of a real API server, whose own controller creates their pods and sets their status.

There is no scheduler, and a kubelet that only serves logs: a test puts a pod on its node, and sets
its status.
"""

from typing import Any

from agentworld.cluster.client import ApiServer, configuration
from fakes.trainer import MERGE, NODE, Kubelet
from machines.control_plane import ControlPlane
from waiting import wait_for

Object = dict[str, Any]


class Jobs:
    """The Jobs of one namespace."""

    def __init__(self, cluster: ControlPlane, kubelet: Kubelet, namespace: str) -> None:
        self.server = ApiServer(configuration(cluster.kubeconfig))
        self.kubelet = kubelet
        self.namespace = namespace
        self.path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def all(self) -> list[Object]:
        return list(self.server.call("GET", self.path)["items"])

    def one(self) -> Object:
        """The only Job, as soon as it exists."""
        jobs: list[Object] = []
        wait_for(lambda: jobs.extend(self.all()) or jobs)
        (job,) = jobs
        return job

    def run(self) -> str:
        """Puts the pod of the only Job on the node, as running; returns its name."""
        label = [("labelSelector", f"job-name={self.one()['metadata']['name']}")]
        pods: list[Object] = []
        wait_for(
            lambda: pods.extend(self.server.call("GET", self._pods, query=label)["items"]) or pods
        )
        (pod,) = pods
        name = str(pod["metadata"]["name"])
        node = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        body = {"metadata": {"name": name}, "target": node}
        self.server.call("POST", f"{self._pods}/{name}/binding", body=body)
        self._write(name, {"phase": "Running"})
        return name

    def complete(self, pod: str) -> None:
        """Ends its process with success."""
        self._write(pod, {"phase": "Succeeded"})

    def fail(self, pod: str, **terminated: object) -> None:
        """Ends its process with a failure."""
        container = {"name": "step", "image": "x", "imageID": "", "ready": False}
        container |= {"restartCount": 0, "state": {"terminated": terminated}}
        self._write(pod, {"phase": "Failed", "containerStatuses": [container]})

    def _write(self, pod: str, status: Object) -> None:
        path = f"{self._pods}/{pod}/status"
        self.server.call("PATCH", path, body={"status": status}, content_type=MERGE)

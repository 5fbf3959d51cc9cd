"""Kubeflow's Trainer on the tests' nodes, limited to a torch runtime: pods for each TrainJob.

No released Trainer or JobSet is here. A pod follows the JobSet that Trainer's types make of the
TrainJob, with its rank (PET_*) and the labels by which pods are found.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client

from agentworld.cluster.client import ApiServer
from fakes.job_set import job_set

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
_SECONDS = 0.3


@contextmanager
def training(server: ApiServer, core: client.CoreV1Api, namespace: str) -> Iterator[None]:
    """Creates and ends pods for the TrainJobs of a namespace while the block runs."""
    stop = threading.Event()
    path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs"

    def work() -> None:
        while not stop.wait(_SECONDS):
            for job in server.call("GET", path)["items"]:
                _look(server, core, path, job)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(server: ApiServer, core: client.CoreV1Api, path: str, job: Object) -> None:
    """The other pods are created once the first has an address; the job ends as they do."""
    metadata, num_nodes = job["metadata"], job["spec"]["trainer"]["numNodes"]
    namespace, name = metadata["namespace"], metadata["name"]
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    pods = core.list_namespaced_pod(namespace, label_selector=selector).items
    if not pods:
        core.create_namespaced_pod(namespace, _pod(job, 0, None))
        return
    first = next(pod for pod in pods if pod.metadata.name == f"{name}-node-0-0")
    if len(pods) < num_nodes and first.status.pod_ip:
        for index in range(len(pods), num_nodes):
            core.create_namespaced_pod(namespace, _pod(job, index, first.status.pod_ip))
    phases = [pod.status.phase for pod in pods]
    if phases.count("Succeeded") == num_nodes:
        _end(server, f"{path}/{name}/status", "Complete", "JobsCompleted")
    elif "Failed" in phases:
        _end(server, f"{path}/{name}/status", "Failed", "FailedJobs")


def _end(server: ApiServer, path: str, kind: str, reason: str) -> None:
    condition = {"type": kind, "status": "True", "reason": reason, "message": "all pods have ended"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    server.call("PATCH", path, body={"status": {"conditions": [condition]}}, content_type=MERGE)


def _pod(job: Object, index: int, master: str | None) -> Object:
    """One of the JobSet's pods, on its own node, so that pods communicate over the network."""
    name = job["metadata"]["name"]
    (replicated,) = job_set(job)["spec"]["replicatedJobs"]
    spec = replicated["template"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    pod_ip = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    variables = [
        {"name": "PET_NODE_RANK", "value": str(index)},
        {"name": "PET_MASTER_ADDR", **({"value": master} if master else pod_ip)},
    ]
    container |= {
        "imagePullPolicy": "Never",
        "env": [*container["env"], *variables],
        "securityContext": {**container["securityContext"], "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *container.get("volumeMounts", [])],
    }
    spec["volumes"] = [{"name": "tmp", "emptyDir": {}}, *spec.get("volumes", [])]
    spec["nodeSelector"] = {"kubernetes.io/hostname": f"node-{index + 1}"}
    labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    return {"metadata": {"name": f"{name}-node-0-{index}", "labels": labels}, "spec": spec}

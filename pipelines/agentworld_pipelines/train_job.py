"""Builds the TrainJob of Kubeflow's Trainer v2 (v1alpha1) for a stage of several nodes.

A patch of the runtime that the TrainJob names sets where its nodes run; the runtime creates the
pods, and sets the rank of each process.
"""

from collections.abc import Sequence
from pathlib import Path

from agentworld.cluster.api_resources import API_RESOURCES, Object, type_fields
from agentworld.cluster.names import PIPELINES
from agentworld.cluster.pod_security import CONTAINER_SECURITY, pod_security
from agentworld.storage.working_copy import address_of
from agentworld_pipelines.job_parts import (
    deadline_seconds,
    environment_of,
    metadata_of,
    name_of,
    pod_of,
    pod_template,
    resources_of,
    volumes_of,
    with_digest,
)
from agentworld_pipelines.job_reporter import Pods
from agentworld_pipelines.placement import Nodes, Place
from agentworld_pipelines.torchrun import GRACE_SECONDS, launcher, program

NODE = "node"
"""The runtime's replicated job, and its container."""

_JOB = "jobset.sigs.k8s.io/jobset-name"
_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
_INDEX = "batch.kubernetes.io/job-completion-index"


def train_job(stage: str, arguments: Sequence[str], folder: Path, place: Place) -> Object:
    """Trains a stage: its arguments are the recipe, the store and the inputs' folders."""
    assert place.nodes is not None
    name = name_of(stage, address_of(str(folder)))
    command = [stage, *arguments]
    return with_digest(
        {
            **type_fields("TrainJob"),
            "metadata": metadata_of(name, "training", command, place),
            "spec": {
                "runtimeRef": {
                    "apiGroup": API_RESOURCES["TrainJob"].group,
                    "kind": "ClusterTrainingRuntime",
                    "name": place.nodes.runtime,
                },
                "trainer": _trainer(command, place, place.nodes),
                "runtimePatches": [{"manager": PIPELINES, "trainingRuntimeSpec": _patch(place)}],
                "activeDeadlineSeconds": deadline_seconds(place),
            },
        }
    )


def pods_of(name: str) -> Pods:
    """The pods that the runtime creates for a TrainJob; the first one's log has rank 0's output."""
    return Pods(f"{_JOB}={name}", {_REPLICATED_JOB: NODE, _INDEX: "0"}, NODE)


def _trainer(arguments: list[str], place: Place, nodes: Nodes) -> Object:
    trainer = {
        "image": place.image,
        "command": launcher(place),
        "args": program(arguments),
        "numNodes": nodes.count,
        "numProcPerNode": place.processes_per_node,
        "resourcesPerNode": resources_of(place),
        "env": environment_of(place),
    }
    return {field: value for field, value in trainer.items() if value}


def _patch(place: Place) -> Object:
    """The patch for the pods of the replicated job that trains: on these nodes, with these mounts,
    under `restricted`, and with the time for a checkpoint.
    """
    pod = {
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        **pod_of(place, volumes_of(place), {"name": NODE, "securityContext": CONTAINER_SECURITY}),
    }
    job = {"name": NODE, "template": {"spec": {"template": pod_template(place, pod)}}}
    return {"template": {"spec": {"replicatedJobs": [job]}}}

"""Builds the Job (batch/v1) of a step with live environments, or of a stage on one node.

Its pod is like the step's own, except for settings that Kubeflow's pods cannot have. A live one has
no seccomp profile; not `Unconfined` either, which the Pod Security Standard `baseline` refuses if
it is set explicitly. A training one has torchrun as its first process, which receives the signal of
a preemption, and the time for a checkpoint. Neither gets a token of the cluster, whatever its
account.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentworld.cluster.api_resources import Object, type_fields
from agentworld.cluster.pod_security import CONTAINER_SECURITY, pod_security
from agentworld.storage.working_copy import address_of, is_bucket
from agentworld_pipelines.job_parts import (
    STEP,
    deadline_seconds,
    environment_of,
    metadata_of,
    name_of,
    pod_of,
    pod_template,
    resources_of,
    volumes_of,
    with_digest,
    with_resources,
)
from agentworld_pipelines.job_reporter import Pods
from agentworld_pipelines.placement import Place
from agentworld_pipelines.torchrun import GRACE_SECONDS, launcher, program

_TMP = "/tmp"
_FILES_LIMIT = "10Gi"
"""The limit of a step's own files, such as compiled kernels."""
_COPY_LIMIT = "200Gi"
"""The same with its working copy of a store in a bucket."""
_DAY_SECONDS = 24 * 3600
_POD = "job-name"


def step_job(
    name: str, step: str, arguments: Sequence[str], place: Place, *, seccomp_profile: str = ""
) -> Object:
    """Runs a step with live environments; `arguments` are the recipe, the store and so on.

    `seccomp_profile` names a file on the nodes, for clusters that set a profile otherwise.
    """
    command = [step, *arguments]
    container = {
        "command": ["python", "-m", "agentworld_pipelines.live_step"],
        "args": command,
        "securityContext": _profile(seccomp_profile),
    }
    pod = {"securityContext": pod_security(seccomp=False)}
    return _job(_Task(name, "live-environments", command), pod, container, place)


def stage_job(stage: str, arguments: Sequence[str], folder: Path, place: Place) -> Object:
    """Trains a stage on one node; `arguments` are those of a TrainJob."""
    name = name_of(stage, address_of(str(folder)))
    command = [stage, *arguments]
    container = {"command": launcher(place), "args": program(command)}
    pod = {"securityContext": pod_security(), "terminationGracePeriodSeconds": GRACE_SECONDS}
    return _job(_Task(name, "training", command), pod, container, place)


def pod_of_job(name: str) -> Pods:
    """The only pod of a Job."""
    return Pods(f"{_POD}={name}", {}, STEP)


class _Task(NamedTuple):
    """The work of a Job."""

    name: str
    component: str
    command: list[str]

    @property
    def store(self) -> str:
        return self.command[2]


def _job(task: _Task, pod: Object, container: Object, place: Place) -> Object:
    spec = {
        # The follower has seen the reason of a failure, and a retried step creates a new Job.
        "backoffLimit": 0,
        "activeDeadlineSeconds": deadline_seconds(place),
        "ttlSecondsAfterFinished": _DAY_SECONDS,
        "template": pod_template(place, {**pod, **_pod(task, container, place)}),
    }
    metadata = metadata_of(task.name, task.component, task.command, place)
    job = with_digest({**type_fields("Job"), "metadata": metadata, "spec": spec})
    return with_resources(job, resources_of(place))


def _pod(task: _Task, container: Object, place: Place) -> Object:
    whole = {
        **container,
        "name": STEP,
        "image": place.image,
        "env": environment_of(place),
        "securityContext": {
            **CONTAINER_SECURITY,
            "readOnlyRootFilesystem": True,
            **container.get("securityContext", {}),
        },
    }
    volumes = volumes_of(place)
    if _TMP not in place.volumes.values():
        has_copy = is_bucket(task.store) and not place.scratch
        limit = _COPY_LIMIT if has_copy else _FILES_LIMIT
        volumes.append(({"name": "tmp", "emptyDir": {"sizeLimit": limit}}, _TMP))
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        **pod_of(place, volumes, whole),
    }


def _profile(file: str) -> Object:
    profile = {"type": "Localhost", "localhostProfile": file}
    return {"seccompProfile": profile} if file else {}

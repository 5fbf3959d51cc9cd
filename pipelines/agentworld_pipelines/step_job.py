"""A step of live environments as a Job (batch/v1), built, not made.

Its pod is the step's own but for two things: no account of the cluster, and no seccomp profile. Not
`Unconfined` either, which the Pod Security Standard `baseline` refuses where it is said.
"""

from collections.abc import Sequence

from agentworld.cluster.api_resources import Object, type_fields
from agentworld_pipelines.job_parts import (
    deadline_seconds,
    environment_of,
    metadata_of,
    pod_of,
    resources_of,
    volumes_of,
    with_digest,
)
from agentworld_pipelines.job_reporter import Pods
from agentworld_pipelines.placement import Place

_STEP = "step"
_TMP = "/tmp"
_DAY_SECONDS = 24 * 3600
_POD = "job-name"


def step_job(
    name: str, step: str, arguments: Sequence[str], place: Place, *, seccomp_profile: str = ""
) -> Object:
    """Does a step: its arguments are the recipe, the store and so on.

    `seccomp_profile` names a file of the nodes' own, where a pod without one is given another.
    """
    command = [step, *arguments]
    spec = {
        # Who begins the step again has seen why, and makes it anew.
        "backoffLimit": 0,
        "activeDeadlineSeconds": deadline_seconds(place),
        "ttlSecondsAfterFinished": _DAY_SECONDS,
        "template": {"spec": _pod(command, place, seccomp_profile)},
    }
    return with_digest(
        {
            **type_fields("Job"),
            "metadata": metadata_of(name, "live-environments", command, place),
            "spec": spec,
        }
    )


def pod_of_job(name: str) -> Pods:
    """It has one."""
    return Pods(f"{_POD}={name}", {}, _STEP)


def _pod(command: Sequence[str], place: Place, seccomp_profile: str) -> Object:
    container = {
        "name": _STEP,
        "image": place.image,
        "command": ["python", "-m", "agentworld_pipelines.live_step"],
        "args": list(command),
        "env": environment_of(place),
        "resources": resources_of(place),
        "securityContext": {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            **_profile(seccomp_profile),
        },
    }
    volumes = volumes_of(place)
    if _TMP not in place.volumes.values():
        volumes.append(({"name": "tmp", "emptyDir": {}}, _TMP))
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        **pod_of(place, volumes, container),
    }


def _profile(file: str) -> Object:
    profile = {"type": "Localhost", "localhostProfile": file}
    return {"seccompProfile": profile} if file else {}

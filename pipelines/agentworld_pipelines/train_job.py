"""A stage of several nodes as a TrainJob of Kubeflow's Trainer v2 (v1alpha1), built, not made.

Where its nodes run is told by a patch of the runtime, which the TrainJob names; the runtime makes
the pods, and tells each process which of them it is.
"""

from collections.abc import Sequence
from pathlib import Path

from agentworld.records.base import digest_json
from agentworld_pipelines.api_server import MANAGER, Object
from agentworld_pipelines.placement import (
    PRIORITY_CLASS,
    QUEUE,
    SHARED_MEMORY,
    WEEK_SECONDS,
    Nodes,
    Place,
)
from agentworld_pipelines.terms import Resources, Toleration

GROUP = "trainer.kubeflow.org"
BUILT = "agentworld.dev/built"
"""The annotation with the digest of all that a TrainJob was built with."""

NODE = "node"
"""A runtime's replicated job, and the container in it."""
LAUNCHER = "launcher"
"""The replicated job in which `mpirun` runs."""
_MASTER_PORT = "29400"
_NAME_DIGITS = 16


def name_of(stage: str, folder: Path) -> str:
    """One name for one folder, so that whoever begins the stage again finds its TrainJob."""
    digest = digest_json(str(folder)).removeprefix("sha256:")
    return f"agentworld-{stage}-{digest[:_NAME_DIGITS]}"


def train_job(stage: str, arguments: Sequence[str], folder: Path, place: Place) -> Object:
    """Trains a stage: its arguments are the recipe, the store and the inputs' folders."""
    assert place.nodes is not None
    name = name_of(stage, folder)
    queued = {QUEUE: place.queue, PRIORITY_CLASS: place.priority_class}
    recipe, store, *_ = arguments
    metadata: Object = {
        "name": name,
        "labels": {
            "app.kubernetes.io/name": "agentworld-training",
            "app.kubernetes.io/component": "training",
            "app.kubernetes.io/part-of": "agentworld",
            "app.kubernetes.io/managed-by": "agentworld-pipelines",
            **{label: value for label, value in queued.items() if value},
        },
        "annotations": {
            "agentworld.dev/step": stage,
            "agentworld.dev/recipe": recipe,
            "agentworld.dev/store": store,
        },
    }
    retries = place.retries
    spec = {
        "runtimeRef": {
            "apiGroup": GROUP,
            "kind": "ClusterTrainingRuntime",
            "name": place.nodes.runtime,
        },
        "trainer": _trainer(name, [stage, *arguments], place, place.nodes),
        "runtimePatches": [{"manager": MANAGER, "trainingRuntimeSpec": _patched(place)}],
        # Its follower may be ended by a person, and then nobody else ends it.
        "activeDeadlineSeconds": retries.most_seconds if retries else WEEK_SECONDS,
    }
    metadata["annotations"][BUILT] = digest_json([metadata, spec])
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": spec,
    }


def rank_0_in(nodes: Nodes) -> str:
    """The replicated job whose first pod's log has what rank 0 says."""
    return LAUNCHER if nodes.launcher == "mpi" else NODE


def _trainer(name: str, arguments: list[str], place: Place, nodes: Nodes) -> Object:
    program = ["-m", "agentworld.steps.member", *arguments]
    # By torchrun's own option, for a Trainer may count processes by what the node requests.
    command = ["torchrun", f"--nproc-per-node={place.processes_per_node}"]
    if nodes.launcher == "mpi":
        command = _mpirun(name, place)
        program = ["python", *program]
    told = {
        "image": place.image,
        "command": command,
        "args": program,
        "numNodes": nodes.count,
        "numProcPerNode": place.processes_per_node,
        "resourcesPerNode": _resources(place),
        "env": _environment(place),
    }
    return {field: value for field, value in told.items() if value}


def _mpirun(name: str, place: Place) -> list[str]:
    """A process that `mpirun` starts on another node has only the variables that are named."""
    exported = [f"MASTER_ADDR={name}-{NODE}-0-0.{name}", f"MASTER_PORT={_MASTER_PORT}", "PATH"]
    options = [word for each in [*exported, *place.variables] for word in ("-x", each)]
    return ["mpirun", "--hostfile", "/etc/mpi/hostfile", *options]


def _resources(place: Place) -> Object:
    devices = {place.accelerator.type: str(place.accelerator.count)} if place.accelerator else {}
    told = {
        "requests": {**_amounts(place.requests), **devices},
        "limits": {**_amounts(place.limits), **devices},
    }
    return {which: amounts for which, amounts in told.items() if amounts}


def _amounts(resources: Resources) -> dict[str, str]:
    return resources.model_dump(exclude_none=True)


def _environment(place: Place) -> list[Object]:
    plain = [{"name": name, "value": value} for name, value in place.environment.items()]
    secret = [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for secret, keys in place.secrets.items()
        for key, variable in keys.items()
    ]
    return [*plain, *secret]


def _patched(place: Place) -> Object:
    """The pods of every replicated job that trains: on these nodes, with these mounts."""
    assert place.nodes is not None
    names = [NODE, LAUNCHER] if place.nodes.launcher == "mpi" else [NODE]
    template = {"spec": {"template": {"spec": _pod(place)}}}
    jobs = [{"name": name, "template": template} for name in names]
    return {"template": {"spec": {"replicatedJobs": jobs}}}


def _pod(place: Place) -> Object:
    mounted = [
        ({"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": claim}}, path)
        for number, (claim, path) in enumerate(place.volumes.items())
    ]
    if place.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": place.shared_memory}
        mounted.append(({"name": "shared-memory", "emptyDir": memory}, SHARED_MEMORY))
    mounts = [{"name": volume["name"], "mountPath": path} for volume, path in mounted]
    told = {
        "nodeSelector": place.node_selector,
        "tolerations": [_toleration(each) for each in place.tolerations],
        "imagePullSecrets": [{"name": name} for name in place.image_pull_secrets],
        "volumes": [volume for volume, _ in mounted],
        "containers": [{"name": NODE, "volumeMounts": mounts}] if mounts else [],
    }
    return {field: value for field, value in told.items() if value}


def _toleration(toleration: Toleration) -> Object:
    told = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value or None,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.toleration_seconds,
    }
    return {field: value for field, value in told.items() if value is not None}

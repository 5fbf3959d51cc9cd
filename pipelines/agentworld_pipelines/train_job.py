"""A stage of several nodes as a TrainJob of Kubeflow's Trainer v2 (v1alpha1), built, not made.

Where its nodes run is told by a patch of the runtime, which the TrainJob names; the runtime makes
the pods, and tells each process which of them it is.
"""

from collections.abc import Sequence
from pathlib import Path

from agentworld.cluster.api_resources import API_RESOURCES, Object, type_fields
from agentworld.cluster.names import PIPELINES
from agentworld.storage.working_copy import address_of
from agentworld_pipelines.job_parts import (
    deadline_seconds,
    environment_of,
    metadata_of,
    name_of,
    pod_of,
    resources_of,
    volumes_of,
    with_digest,
)
from agentworld_pipelines.job_reporter import Pods
from agentworld_pipelines.placement import Nodes, Place

NODE = "node"
"""A runtime's replicated job, and the container in it."""
LAUNCHER = "launcher"
"""The replicated job in which `mpirun` runs."""
_MASTER_PORT = "29400"

_SHUTDOWN_TIMEOUT = "--shutdown-timeout=300"
"""In seconds, for a checkpoint, when `torchrun` is told to end; a pod's own may be shorter."""

_OF_THE_IMAGE = (
    *("PATH", "HOME", "USER", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    *("HF_HUB_OFFLINE", "MLFLOW_DISABLE_TELEMETRY", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"),
)
"""What it says to a container's own command, and not to what came by ssh."""

# All meet where `mpirun` starts the first, which is on the launcher if that is a node, and else on
# the first node. It would give each a core of its own, and no other. Told to end, it kills what it
# started after a second; SIGUSR1 it hands on.
_LAUNCH = f"""
trap 'exit 143' TERM
MASTER_ADDR=$(mpirun -n 1 hostname).$0 || exit
export MASTER_ADDR MASTER_PORT={_MASTER_PORT}
mpirun --bind-to none "$@" & mpirun=$!
trap 'kill -USR1 $mpirun' TERM
wait $mpirun; status=$?
while kill -0 $mpirun 2>/dev/null; do wait $mpirun; status=$?; done
exit $status
"""

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
                "trainer": _trainer(name, command, place, place.nodes),
                "runtimePatches": [{"manager": PIPELINES, "trainingRuntimeSpec": _patch(place)}],
                "activeDeadlineSeconds": deadline_seconds(place),
            },
        }
    )


def pods_of(name: str, nodes: Nodes) -> Pods:
    """Those that the runtime makes of a TrainJob; what rank 0 says is in the log of the first."""
    replicated_job = LAUNCHER if nodes.launcher == "mpi" else NODE
    return Pods(f"{_JOB}={name}", {_REPLICATED_JOB: replicated_job, _INDEX: "0"}, NODE)


def _trainer(name: str, arguments: list[str], place: Place, nodes: Nodes) -> Object:
    program = ["-m", "agentworld.steps.member", *arguments]
    # By torchrun's own option, for a Trainer may count processes by what the node requests.
    command = ["torchrun", f"--nproc-per-node={place.processes_per_node}", _SHUTDOWN_TIMEOUT]
    if nodes.launcher == "mpi":
        command = _mpirun(name, place)
        program = ["python", *program]
    trainer = {
        "image": place.image,
        "command": command,
        "args": program,
        "numNodes": nodes.count,
        "numProcPerNode": place.processes_per_node,
        "resourcesPerNode": resources_of(place),
        "env": environment_of(place),
    }
    return {field: value for field, value in trainer.items() if value}


def _mpirun(name: str, place: Place) -> list[str]:
    """A process that `mpirun` starts on another node has only the variables that are named.

    Its hosts, their slots and how it reaches them are told by Trainer, in the environment.
    """
    exported_variables = dict.fromkeys(
        ["MASTER_ADDR", "MASTER_PORT", *_OF_THE_IMAGE, *place.variables]
    )
    options = [argument for variable in exported_variables for argument in ("-x", variable)]
    return ["sh", "-c", _LAUNCH, name, *options]


def _patch(place: Place) -> Object:
    """The pods of every replicated job that trains: on these nodes, with these mounts."""
    assert place.nodes is not None
    names = [NODE, LAUNCHER] if place.nodes.launcher == "mpi" else [NODE]
    pod = pod_of(place, volumes_of(place), {"name": NODE})
    template = {"spec": {"template": {"spec": pod}}}
    jobs = [{"name": name, "template": template} for name in names]
    return {"template": {"spec": {"replicatedJobs": jobs}}}

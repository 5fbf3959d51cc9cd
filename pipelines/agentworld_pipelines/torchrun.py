"""How torchrun starts the processes of a stage, and ends them with a checkpoint."""

from collections.abc import Sequence

from agentworld_pipelines.placement import Place

_SHUTDOWN_SECONDS = 300
"""How long `torchrun` waits for the processes' checkpoint after it is told to end."""
GRACE_SECONDS = _SHUTDOWN_SECONDS + 30
"""A pod's terminationGracePeriodSeconds. The kubelet kills `torchrun` after it, so that `torchrun`
has to be done before: it kills what is left and tells how each process ended."""


def launcher(place: Place) -> list[str]:
    """On one node, or on each of several; a TrainJob tells the rest in variables."""
    # By torchrun's own option, for a Trainer may count processes by what the node requests.
    return [
        "torchrun",
        f"--nproc-per-node={place.processes_per_node}",
        f"--shutdown-timeout={_SHUTDOWN_SECONDS}",
    ]


def program(command: Sequence[str]) -> list[str]:
    """What each process runs: a stage, its recipe, its store and the folders of its inputs."""
    return ["-m", "agentworld.steps.member", *command]

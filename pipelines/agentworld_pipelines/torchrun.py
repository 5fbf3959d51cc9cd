"""The torchrun command of a stage, and its shutdown with a checkpoint."""

from collections.abc import Sequence

from agentworld_pipelines.placement import Place

_SHUTDOWN_SECONDS = 300
"""How long `torchrun` waits after SIGTERM for the processes to write a checkpoint."""
GRACE_SECONDS = _SHUTDOWN_SECONDS + 30
"""A pod's terminationGracePeriodSeconds, after which the kubelet kills `torchrun`.

The 30 s more let `torchrun` kill the remaining processes and report how each one ended.
"""


def launcher(place: Place) -> list[str]:
    """The command on each node. A TrainJob sets the rest as environment variables."""
    # torchrun's own option, because a Trainer may derive the number from the node's resources
    return [
        "torchrun",
        f"--nproc-per-node={place.processes_per_node}",
        f"--shutdown-timeout={_SHUTDOWN_SECONDS}",
    ]


def program(command: Sequence[str]) -> list[str]:
    """What each process runs: a stage, its recipe, its store and the folders of its inputs."""
    return ["-m", "agentworld.steps.member", *command]

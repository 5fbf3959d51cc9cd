"""One of the processes that do a training step together: `torchrun -m agentworld.steps.member STEP
ARGUMENT...` on each node, with one store for all of them.

Open MPI's launcher starts it too, where MASTER_ADDR and MASTER_PORT are given.
"""

import os
import sys
from collections.abc import Callable, Sequence

from agentworld.errors import InputError
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.steps.cpt import cpt
from agentworld.steps.rl import rl
from agentworld.steps.sft import sft

_STEPS: dict[str, tuple[Callable[..., str], str]] = {
    "cpt": (cpt, "RECIPE STORE DATA"),
    "sft": (sft, "RECIPE STORE DATA PARENT"),
    "rl": (rl, "RECIPE STORE DATA PARENT"),
}


def main(words: Sequence[str]) -> None:
    """Does this process's part of a step, which is named first; its arguments follow."""
    step, *arguments = words or [""]
    if step not in _STEPS:
        steps = ", ".join(_STEPS)
        raise InputError(f"several processes cannot do the step {step!r}; give one of: {steps}")
    work, usage = _STEPS[step]
    if len(arguments) != len(usage.split()):
        raise InputError(f"{step} takes {usage}, not {len(arguments)} arguments; give these")
    ranks = from_environment(Ranks)
    if ranks.world_size > 1:
        os.environ.update(ranks.variables)
    work(*arguments)


if __name__ == "__main__":
    status = exit_status(lambda: main(sys.argv[1:]))
    if status:
        # torch's threads still wait for the others, and an ordinary end may abort in them.
        sys.stdout.flush()
        os._exit(status)

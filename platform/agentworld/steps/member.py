"""One of the processes of a training step.

Run `torchrun -m agentworld.steps.member STEP ARGUMENT...` on each node, with one shared store.
"""

import os
import sys
from collections.abc import Sequence

from agentworld.errors import InputError
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.steps.run import run_by_name
from agentworld.steps.table import STEPS, names_of


def main(words: Sequence[str]) -> None:
    """Does this process's part of a step; the first word is the step, the others its arguments."""
    step, *arguments = words or [""]
    if step not in names_of("training"):
        steps = ", ".join(names_of("training"))
        raise InputError(f"several processes cannot do the step {step!r}; give one of: {steps}")
    STEPS[step].bind(arguments)
    from_environment(Ranks)
    run_by_name(step, *arguments)


if __name__ == "__main__":
    status = exit_status(lambda: main(sys.argv[1:]))
    if status:
        # torch's threads still wait for the other processes, and a normal exit may abort in them.
        sys.stdout.flush()
        os._exit(status)

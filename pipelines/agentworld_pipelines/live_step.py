"""Runs a live step as the only process of a pod that can run a sandbox:

`python -m agentworld_pipelines.live_step STEP ARGUMENT...`.
"""

import sys
from collections.abc import Sequence

from agentworld.errors import InputError
from agentworld.recipes.environment import exit_status
from agentworld.steps.table import names_of
from agentworld_pipelines.stages import live


def main(argv: Sequence[str]) -> None:
    """Runs the step that is named first, with the arguments that follow; prints its folder."""
    step, *arguments = argv or [""]
    if step not in names_of("live"):
        steps = ", ".join(names_of("live"))
        raise InputError(f"{step!r} is not a step with live environments; give one of: {steps}")
    sys.stdout.write(f"{live(step, *arguments)}\n")


if __name__ == "__main__":
    sys.exit(exit_status(lambda: main(sys.argv[1:])))

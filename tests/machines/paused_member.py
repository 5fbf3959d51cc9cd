"""`agentworld.steps.member`, which pauses at one of its checkpoints after the warm-up.

Arguments: the checkpoint's name, a file whose creation resumes it, and the arguments of a member. A
test can thus end a training at a chosen step, on any machine.
"""

import os
import sys
import time
from pathlib import Path

from agentworld.recipes.environment import exit_status
from agentworld.steps import member
from agentworld.train import preemption


def main(name: str, resume_file: str, *words: str) -> None:
    seal = preemption.seal

    def seal_and_wait(checkpoint: Path) -> None:
        seal(checkpoint)
        is_pause_point = checkpoint.name == name and checkpoint.parents[1].name != "warm-up"
        while is_pause_point and not Path(resume_file).exists():
            time.sleep(0.01)

    preemption.seal = seal_and_wait
    member.main(words)


if __name__ == "__main__":
    status = exit_status(lambda: main(*sys.argv[1:]))
    sys.stdout.flush()
    os._exit(status or 0)

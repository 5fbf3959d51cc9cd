"""A CPT step that waits after its second checkpoint, so that a test can kill it: `python -m
make.paused_training RECIPE STORE DATA`.
"""

import sys
import threading
from typing import Any

from agentworld.steps.run import run_by_name
from agentworld.train.trainer import TrainerProgress

_PAUSE_AT = 25
"""With a checkpoint every tenth step."""

_on_step_end = TrainerProgress.on_step_end


def _pause(progress: Any, args: Any, state: Any, control: Any, **rest: Any) -> None:
    _on_step_end(progress, args, state, control, **rest)
    if state.global_step == _PAUSE_AT:
        threading.Event().wait()


if __name__ == "__main__":
    TrainerProgress.on_step_end = _pause
    run_by_name("cpt", *sys.argv[1:])

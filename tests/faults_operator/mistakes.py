"""What our own code did not expect, as the logs of its processes tell."""

from collections.abc import Iterator
from pathlib import Path

from faults_operator.finding import Finding

_OURS = ("operators/agentworld_operator/", "platform/agentworld/")


def mistakes(folder: Path) -> Iterator[Finding]:
    """Each traceback that came through our code; kopf tells its own, and tries again."""
    for name in ("first", "second", "service"):
        for block in (folder / f"{name}.log").read_text(errors="replace").split("Traceback")[1:]:
            trace, *_ = block.split("\n20")  # a line of the log begins with its year
            if any(folder in trace for folder in _OURS):
                last = [line for line in trace.splitlines() if line.strip(" |+-")][-1]
                yield Finding("mistaken", f"{name}.log", "no traceback", last[:300])

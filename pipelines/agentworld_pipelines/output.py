"""The output of a step, which Kubeflow shows as the log of its pod."""

import sys


def write_line(line: str) -> None:
    """Writes a line and flushes it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

"""A training's figures by step, as JSON lines in a file of its step's folder.

A resumed training appends to the file. A repeated step has two lines, and the later one counts.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from agentworld.records.file import read_regular

FIGURES = "figures.jsonl"
_STEP = "step"


class StepFigures:
    """Appends to the file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FIGURES

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """An OnMetrics callback; an incomplete line is ignored."""
        line = json.dumps({_STEP: step, **figures})
        # The newline before ends a line that a kill cut off.
        with self._path.open("a") as file:
            file.write(f"\n{line}")


def read_figures(folder: Path) -> dict[int, dict[str, float]]:
    """The figures by step, in order; empty if nothing was written."""
    path = folder / FIGURES
    if not path.is_file():
        return {}
    by_step: dict[int, dict[str, float]] = {}
    for line in read_regular(path).decode().splitlines():
        try:
            figures = json.loads(line)
        except ValueError:
            continue
        by_step.setdefault(figures.pop(_STEP), {}).update(figures)
    return dict(sorted(by_step.items()))

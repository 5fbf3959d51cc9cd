"""A training's figures by step, in a file of its step's folder: a JSON line for each report.

A training that was killed appends to what it wrote before. A step that it does again stands there
twice, and the later line counts.
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
        """A kind of OnMetrics; a line is whole or is not counted."""
        line = json.dumps({_STEP: step, **figures})
        # The newline before ends a line that a kill cut off.
        with self._path.open("a") as file:
            file.write(f"\n{line}")


def read_figures(folder: Path) -> dict[int, dict[str, float]]:
    """The figures by step, in order; empty where nothing was written."""
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

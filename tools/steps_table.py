"""Writes what is declared of the steps into a guide: `steps_table.py GUIDE`.

The table stands between two comments of the guide, and is replaced.
"""

import sys
from pathlib import Path

from agentworld.runner.declaration import Input, Step
from agentworld.steps.table import STEPS

BEGIN, END = "<!-- steps: written by tools/steps_table.py -->\n", "<!-- end of steps -->"
_HEAD = "| step | does | reads | makes | kind | command |\n|---|---|---|---|---|---|\n"


def table() -> str:
    """The steps in their order, as Markdown."""
    return _HEAD + "".join(map(_row, STEPS.values()))


def _row(step: Step) -> str:
    reads = ", ".join(map(_input, step.inputs)) or "-"
    command = f"`{step.command}`" if step.command else "-"
    cells = (f"`{step.name}`", step.does, reads, step.makes, step.kind, command)
    return f"| {' | '.join(cells)} |\n"


def _input(declared: Input) -> str:
    if not declared.step:
        return f"a text `{declared.name}`"
    same = declared.name == declared.step
    return f"`{declared.step}`" if same else f"`{declared.step}` as `{declared.name}`"


def main(guide: str) -> None:
    """Replaces the table of a guide."""
    path = Path(guide)
    before, _, others = path.read_text().partition(BEGIN)
    _, _, after = others.partition(END)
    path.write_text(f"{before}{BEGIN}{table()}{END}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])

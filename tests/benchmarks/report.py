"""What every benchmark writes and prints: its JSON, its figures, and those it missed."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentworld.reports.targets import Figure
from agentworld.runner.code import commit
from benchmarks.machine import BUSY, machine
from benchmarks.targets import figures_of

_ROOT = Path(__file__).parents[2]
BENCH = _ROOT / ".bench"
_PUBLISHED = _ROOT / "docs" / "figures"


def publish(
    name: str,
    measured: Mapping[str, object],
    figures: Sequence[Figure],
    missed: Sequence[str] = (),
    *,
    options: str = "",
) -> int:
    """Writes `.bench/NAME.json`; returns exit status 1 where something that must hold does not.

    A run of everything, which needs no `options` of the make target, is also written to
    `docs/figures/NAME.json`.
    """
    missed = [*(figure.name for figure in figures if not figure.holds), *missed]
    command = f"make bench-{name} {options}".strip()
    text = json.dumps({"command": command, **measured, "missed": missed}, indent=2) + "\n"
    for folder in [BENCH] if options else [BENCH, _PUBLISHED]:
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(text)
    for figure in figures:
        bound = "" if figure.must is None else figure.wants(figure.must)
        value = figure.text if figure.interval else f"{figure.value:.3f}"
        print(f"{figure.name:<28} {value:>23}  {bound}")
    print(f"missed: {'; '.join(missed) or 'nothing'}")
    return 1 if missed else 0


def measure_parts(
    name: str,
    parts: Mapping[str, Callable[[Path], Mapping[str, object]]],
    chosen: Sequence[str],
    known: Mapping[str, object],
) -> int:
    """Measures the chosen parts, or all, each in an empty folder, and publishes their keys."""
    measured = {**measured_on(), **known}
    for part in chosen or parts:
        measured |= parts[part](empty_folder(name, part))
    figures = figures_of(name, measured, is_part=bool(chosen))
    return publish(name, measured, figures, options=parts_option(chosen))


def parts_option(chosen: Sequence[str]) -> str:
    """The option of the make target that measures these parts; empty where all are measured."""
    return f'PARTS="{" ".join(chosen)}"' if chosen else ""


def measured_on() -> dict[str, object]:
    """The machine and the commit, as every JSON names them; warns of a busy machine."""
    known = machine()
    if known["load_average"] > BUSY:
        print("the machine is busy already; these figures are rough", file=sys.stderr)
    return {"machine": known, "commit": commit()}


def empty_folder(*names: str) -> Path:
    """A folder in `.bench`, where nothing of an earlier run is."""
    folder = BENCH.joinpath(*names)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder

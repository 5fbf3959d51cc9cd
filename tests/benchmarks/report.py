"""The output of every benchmark: its JSON, its figures, and missed targets."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentworld.runner.code import commit
from benchmarks.machine import BUSY, machine
from benchmarks.targets import figures_of

_ROOT = Path(__file__).parents[2]
BENCH = _ROOT / ".bench"
PUBLISHED = _ROOT / "docs" / "figures"


def publish(
    name: str,
    measured: Mapping[str, object],
    missed: Sequence[str] = (),
    *,
    parts: Sequence[str] = (),
    options: str = "",
    file: str = "",
) -> int:
    """Writes `.bench/FILE.json`; returns exit status 1 if a required target is missed.

    A complete run, without `options` of the make target and without chosen `parts`, is also written
    to `docs/figures/NAME.json`. FILE is NAME by default.
    """
    file = file or name
    if parts:
        options = f'PARTS="{" ".join(parts)}"'
    entries = {"command": f"make bench-{name} {options}".strip(), **measured}
    _write(BENCH, file, entries)  # first, because the run took minutes and a figure may be missing
    figures = figures_of(name, measured, is_part=bool(parts))
    missed = [*(figure.name for figure in figures if not figure.holds), *missed]
    for folder in [BENCH] if options else [BENCH, PUBLISHED]:
        _write(folder, file, {**entries, "missed": missed})
    for figure in figures:
        bound = "" if figure.must is None else figure.wants(figure.must)
        value = figure.text if figure.interval else f"{figure.value:.3f}"
        print(f"{figure.name:<28} {value:>23}  {bound}")
    print(f"missed: {'; '.join(missed) or 'nothing'}")
    return 1 if missed else 0


def _write(folder: Path, name: str, entries: Mapping[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(entries, indent=2) + "\n")


def measure_parts(
    name: str,
    parts: Mapping[str, Callable[[Path], Mapping[str, object]]],
    chosen_parts: Sequence[str],
    static_entries: Mapping[str, object],
) -> int:
    """Measures the chosen parts, or all, each in an empty folder, and publishes their keys."""
    measured = {**measured_on(), **static_entries}
    for part in chosen_parts or parts:
        measured |= parts[part](empty_folder(name, part))
    return publish(name, measured, parts=chosen_parts)


def measured_on() -> dict[str, object]:
    """The machine and the commit, for the JSON; warns of a busy machine."""
    description = machine()
    if description["load_average"] > BUSY:
        print("the machine is busy already; these figures are rough", file=sys.stderr)
    return {"machine": description, "commit": commit()}


def empty_folder(*names: str) -> Path:
    """An empty folder in `.bench`."""
    folder = BENCH.joinpath(*names)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder

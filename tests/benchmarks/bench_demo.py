"""A recipe from nothing: seconds of each step, memory, and every figure against its target."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from agentworld.steps.summary import Summary
from agentworld.steps.targets import MOST_SECONDS, Figure, figures_of

_BENCH = Path(__file__).parents[2] / ".bench"


def main(profile: str = "demo") -> int:
    """Exit status 1 where something that must hold does not."""
    store = _BENCH / profile
    shutil.rmtree(store, ignore_errors=True)
    started = time.monotonic()
    words = f"-m agentworld_cli.main demo --profile {profile} --store {store}"
    done = subprocess.run([sys.executable, *words.split()], check=False)
    if done.returncode != 0:
        return done.returncode
    most = MOST_SECONDS.get(profile)
    wall = Figure("wall time", time.monotonic() - started, must=most, at_most=True)
    summary = Summary.read(store / "summary.json")
    missed = [figure.name for figure in [*figures_of(summary), wall] if not figure.holds]
    if summary.gate.verdict == "refused":
        missed.append("gate")
    write(profile, summary, wall.value, missed)
    show(summary, wall.value, missed)
    return 1 if missed else 0


def write(profile: str, summary: Summary, wall_seconds: float, missed: list[str]) -> None:
    found = {**summary.model_dump(mode="json"), "wall_seconds": wall_seconds, "missed": missed}
    (_BENCH / f"{profile}.json").write_text(json.dumps(found, indent=2) + "\n")


def show(summary: Summary, wall_seconds: float, missed: list[str]) -> None:
    for step, seconds in summary.seconds.items():
        print(f"seconds.{step:<12} {seconds:8.1f}")
    print(f"wall_seconds         {wall_seconds:8.1f}")
    print(f"peak_memory_gib      {summary.peak_memory_gib:8.2f}")
    print(f"missed: {'; '.join(missed) or 'nothing'}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""A recipe from start to end: seconds of each step, memory, and every figure against its target."""

import subprocess
import sys
import time

from agentworld.reports.summary import Summary
from benchmarks.report import empty_folder, measured_on, publish


def main(profile: str = "demo") -> int:
    """Exit status 1 if a required target is missed."""
    machine_fields = measured_on()
    store = empty_folder(profile)
    start = time.monotonic()
    arguments = f"-m agentworld_cli.main demo --recipe {profile} --store {store}"
    result = subprocess.run([sys.executable, *arguments.split()], check=False)
    if result.returncode != 0:
        return result.returncode
    wall_seconds = time.monotonic() - start
    summary = Summary.read(store / "summary.json")
    missed = ["gate"] if summary.gate.verdict == "refused" else []
    for step, seconds in summary.seconds.items():
        print(f"seconds.{step:<12} {seconds:8.1f}")
    print(f"peak_memory_gib      {summary.peak_memory_gib:8.2f}")
    measured = {**machine_fields, **summary.model_dump(mode="json"), "wall_seconds": wall_seconds}
    if profile == "demo":
        return publish("demo", measured, missed)
    return publish("demo", measured, missed, options=f"PROFILE={profile}", file=f"demo-{profile}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

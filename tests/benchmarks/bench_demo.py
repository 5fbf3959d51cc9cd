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
    started = time.monotonic()
    words = f"-m agentworld_cli.main demo --recipe {profile} --store {store}"
    done = subprocess.run([sys.executable, *words.split()], check=False)
    if done.returncode != 0:
        return done.returncode
    wall_seconds = time.monotonic() - started
    summary = Summary.read(store / "summary.json")
    refused = ["gate"] if summary.gate.verdict == "refused" else []
    for step, seconds in summary.seconds.items():
        print(f"seconds.{step:<12} {seconds:8.1f}")
    print(f"peak_memory_gib      {summary.peak_memory_gib:8.2f}")
    measured = {**machine_fields, **summary.model_dump(mode="json"), "wall_seconds": wall_seconds}
    if profile == "demo":
        return publish("demo", measured, refused)
    return publish("demo", measured, refused, options=f"PROFILE={profile}", file=f"demo-{profile}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

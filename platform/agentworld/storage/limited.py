"""Runs a check in a separate process with limits on processor time and memory.

External files can keep a processor busy for ever, or fill all memory. The kernel kills such a
process, and the caller continues.
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
from typing import NoReturn

from agentworld.errors import InputError
from agentworld.records.file import read_regular

_WALL_SECONDS = 600.0
"""For a process that waits instead of working, which none of ours should."""
_REFUSED, _NO_MEMORY = 2, 3


def ask(module: str, request: str, too_much: str) -> str | None:
    """The problem that the `answer` of the module finds in a request; null if there is none.

    `too_much` is the problem if a limit is exceeded. Raises RuntimeError if the module itself
    fails.
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


def answer(check: Callable[[str], None]) -> NoReturn:
    """Runs a module's main and ends the process; `check` reads the request, sets its limits with
    `bound`, and raises InputError.

    The process ends at once: the usual end of an interpreter with torch takes seconds of processor
    time, which would count against the limits.
    """
    status = _exit_status(check)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _exit_status(check: Callable[[str], None]) -> int:
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
    """Limits the additional processor time and memory of this process.

    More time kills it; more memory raises MemoryError.
    """
    _limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + seconds)
    _limit(resource.RLIMIT_DATA, _data_bytes() + (gib << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if most == resource.RLIM_INFINITY else min(value, most), most))


def _data_bytes() -> int:
    """The bytes that count against RLIMIT_DATA; mapped files, such as weights, do not."""
    pages = int(read_regular(Path("/proc/self/statm")).split()[5])
    return pages * os.sysconf("SC_PAGE_SIZE")

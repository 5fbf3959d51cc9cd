"""Whether the foreground program waits for keys, by the kernel's report of its threads (proc(5)).

It does if each thread sleeps in a call that only an event ends, and one such event is input of the
terminal. Calls with a time limit do not count: `top` shows its next screen without a key. Unknown
calls do not count either.
"""

import os
import platform
import re
import select
import stat
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_CONTROLLING_TERMINAL = os.makedev(5, 0)  # /dev/tty
_LOCAL_FLAGS, _CHARACTERS = 3, 6  # of what tcgetattr returns
# A thread ended meanwhile, may not be read, or passed an invalid list to the kernel.
_UNKNOWN = (OSError, ValueError, struct.error, termios.error)
_POLLED = struct.Struct("=ihh")
_MOST_DESCRIPTORS = 1024
_TARGET = re.compile(r"^tfd: +(\d+) events: +([0-9a-f]+)", re.MULTILINE)

# Numbers on x86-64 and on arm64, and the argument with the time limit.
_CALLS: dict[str, tuple[int | None, int | None, int | None]] = {
    "read": (0, 63, None), "readv": (19, 65, None),
    "write": (1, 64, None), "writev": (20, 66, None),
    "poll": (7, None, 2), "ppoll": (271, 73, 2),
    "select": (23, None, 4), "pselect6": (270, 72, 4),
    "epoll_wait": (232, None, 3), "epoll_pwait": (281, 22, 3), "epoll_pwait2": (441, 441, 3),
    "wait4": (61, 260, None), "waitid": (247, 95, None), "futex": (202, 98, 3),
    "pause": (34, None, None), "rt_sigsuspend": (130, 133, None), "rt_sigtimedwait": (128, 137, 2),
}  # fmt: skip
_TRANSFERS = {"read", "readv", "write", "writev"}
_IN_MILLISECONDS = {"poll", "epoll_wait", "epoll_pwait"}  # all others have a pointer to a time
_COLUMNS = {"x86_64": 0, "aarch64": 1}
_COLUMN = _COLUMNS.get(platform.machine())
_NAMES = {} if _COLUMN is None else {call[_COLUMN]: name for name, call in _CALLS.items()}


class _Call(NamedTuple):
    """The call in which a thread sleeps."""

    process: Path
    name: str
    arguments: tuple[int, ...]


def awaits_keys(shell: int, group: int, line: int) -> bool:
    """Whether a process group that a shell started waits for input of the terminal `line`.

    False if the kernel does not report it.
    """
    try:
        flags = termios.tcgetattr(line)
        if not flags[_LOCAL_FLAGS] & termios.ICANON and not flags[_CHARACTERS][termios.VMIN]:
            return False  # this read has a time limit
        terminals = {os.fstat(line).st_rdev, _CONTROLLING_TERMINAL}
        calls = [_call_of(thread) for thread in _threads(shell, group)]
        if not all(call and _is_endless(call, terminals) for call in calls):
            return False
        return any(terminals & _inputs(call) for call in calls if call)
    except _UNKNOWN:
        return False


def _threads(shell: int, group: int) -> Iterator[Path]:
    for process in _descendants(shell):
        state, _, its_group = (process / "stat").read_text().rpartition(") ")[2].split()[:3]
        if int(its_group) == group and state not in "ZX":
            yield from (process / "task").iterdir()


def _descendants(process: int) -> Iterator[Path]:
    for thread in (_PROC / str(process) / "task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            yield _PROC / str(child)
            yield from _descendants(child)


def _call_of(thread: Path) -> _Call | None:
    """Null for a thread that runs, or that sleeps in an unknown call or in none."""
    number, *words = (thread / "syscall").read_text().split()
    name = _NAMES.get(int(number)) if words else None
    arguments = tuple(int(word, 16) for word in words)
    return _Call(thread.parents[1], name, arguments) if name else None


def _is_endless(call: _Call, terminals: set[int]) -> bool:
    """Whether only an event ends a call. A file of a disk ends one by itself."""
    limit = _CALLS[call.name][2]
    if limit is not None:
        value = call.arguments[limit]
        return bool(value & 1 << 31) if call.name in _IN_MILLISECONDS else value == 0
    if call.name not in _TRANSFERS:
        return True
    status = _status(call, call.arguments[0])
    is_key = call.name.startswith("read") and status.st_rdev in terminals
    return is_key or stat.S_ISFIFO(status.st_mode)


def _inputs(call: _Call) -> set[int]:
    """The devices whose input ends a call."""
    return {_status(call, descriptor).st_rdev for descriptor in _descriptors(call)}


def _descriptors(call: _Call) -> Iterator[int]:
    first, second, *_ = call.arguments
    match call.name:
        case "read" | "readv":
            yield first
        case "poll" | "ppoll":
            polled = _memory(call, first, min(second, _MOST_DESCRIPTORS) * _POLLED.size)
            for descriptor, events, _ in _POLLED.iter_unpack(polled):
                if descriptor >= 0 and events & select.POLLIN:
                    yield descriptor
        case "select" | "pselect6" if second:
            number = min(first, _MOST_DESCRIPTORS)
            bits = int.from_bytes(_memory(call, second, (number + 7) // 8), "little")
            yield from (descriptor for descriptor in range(number) if bits >> descriptor & 1)
        case "epoll_wait" | "epoll_pwait" | "epoll_pwait2":
            text = (call.process / "fdinfo" / str(first)).read_text()
            for descriptor, events in _TARGET.findall(text):
                if int(events, 16) & select.EPOLLIN:
                    yield int(descriptor)


def _status(call: _Call, descriptor: int) -> os.stat_result:
    return (call.process / "fd" / str(descriptor)).stat()


def _memory(call: _Call, address: int, size: int) -> bytes:
    with (call.process / "mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)

"""What a sandboxed command may not ask the kernel for: namespaces of its own.

In a user namespace of its own a command would be root again, and could mount and reach much of
the kernel. The filter is a classic BPF program (seccomp(2)), as bubblewrap takes it. The way by a
sysctl is closed in pods, whose /proc/sys is read-only.
"""

import platform
import struct
from typing import NamedTuple

from agentworld.errors import SandboxUnavailable


class _Calls(NamedTuple):
    """A machine's number in the kernel's audit, and those of its system calls."""

    machine: int
    clone: int
    unshare: int
    setns: int


_CALLS = {
    "x86_64": _Calls(0xC000003E, clone=56, unshare=272, setns=308),
    "aarch64": _Calls(0xC00000B7, clone=220, unshare=97, setns=268),
}
_CLONE3 = 435  # everywhere
_FOREIGN = 0x40000000  # from here on, x86-64's second table of the same calls
_NEW_USER = 0x10000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FLAGS = 0, 4, 16  # where the kernel's record of a call has them
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NOT_PERMITTED, _NOT_THERE = 0x00050000 | 1, 0x00050000 | 38


def filter_of(machine: str = platform.machine()) -> bytes:
    """The program; raises SandboxUnavailable for a machine whose calls are not known here.

    clone3 is answered as if the kernel had none, for its flags cannot be read by a filter; libc
    then takes clone.
    """
    if machine not in _CALLS:
        raise SandboxUnavailable(
            f"no sandbox: {machine} has no filter of system calls; use one of {', '.join(_CALLS)}"
        )
    calls = _CALLS[machine]
    lines = (
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 0, 10, calls.machine),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 8, 0, _FOREIGN),
        (_EQUAL, 5, 0, calls.unshare),
        (_EQUAL, 4, 0, calls.setns),
        (_EQUAL, 4, 0, _CLONE3),
        (_EQUAL, 0, 5, calls.clone),
        (_LOAD, 0, 0, _FLAGS),
        (_ANY_BIT, 0, 3, _NEW_USER),
        (_RETURN, 0, 0, _NOT_PERMITTED),
        (_RETURN, 0, 0, _NOT_THERE),
        (_RETURN, 0, 0, _KILL),
        (_RETURN, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("=HBBI", *line) for line in lines)

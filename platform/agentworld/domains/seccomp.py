"""The system calls that a sandboxed command may not make.

No limit of the sandbox covers these calls: they use memory outside of files and address spaces,
reach what the whole machine shares, or create namespaces. In its own user namespace a command would
be root again. Calls that need a capability are not listed, because a sandbox has no capability. The
filter is a classic BPF program (seccomp(2)), the form that bubblewrap takes.
"""

import platform
import struct
from collections.abc import Collection, Iterator
from typing import Literal

from agentworld.errors import EnvironmentUnavailable

_AUDIT_NUMBERS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = (56, 220)
_FCNTL = (72, 25)

# Numbers on x86-64 and on arm64; null if that machine has no such call.
_DENIED: dict[str, tuple[int, int | None]] = {
    # Memory that belongs to no process and no file, and outlives the process that created it.
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Memory that no address space counts.
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "socket": (41, 198), "socketpair": (53, 199),
    "io_setup": (206, 0), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # Calls that bypass this filter.
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # The machine's log and disks, locks on its files, and notifications about them.
    "syslog": (103, 116), "sync": (162, 81), "syncfs": (306, 267), "flock": (73, 32),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # Other processes' memory and files.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    # Namespaces.
    "unshare": (272, 97), "setns": (308, 268),
}  # fmt: skip
_NEWEST = 462
"""The newest call that was reviewed; the calls of later kernels get ENOSYS."""
_CLONE3 = 435  # everywhere
_FOREIGN = 0x40000000  # from here on, x86-64's second table of the same calls
_NEW_USER = 0x10000000
_LOCKS = (5, 6, 7, 36, 37, 38)  # commands of fcntl: others see locks on the machine's files
_LEASE, _NOTIFY, _PIPE_SIZE = 1024, 1026, 1031
_FIRST_FAMILY_WITH_ADDRESSES = 2  # before it is AF_UNIX alone

Exemption = Literal["locks", "socketpair"]
"""What a profile may allow: locks on files, and pairs of sockets connected only to each other."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# Offsets in the kernel's record of a call.
_NUMBER, _MACHINE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NOT_PERMITTED, _NOT_THERE = 0x00050000 | 1, 0x00050000 | 38

_Line = tuple[int, int, int, int]
"""An operation, the number of lines to skip if it is true and if it is false, and a value."""


def filter_of(machine: str = platform.machine(), exemptions: Collection[Exemption] = ()) -> bytes:
    """The program; raises EnvironmentUnavailable for a machine whose calls are not known here.

    clone3 is answered as if the kernel had none, for its flags cannot be read by a filter; libc
    then takes clone.
    """
    if machine not in _AUDIT_NUMBERS:
        machines = ", ".join(_AUDIT_NUMBERS)
        raise EnvironmentUnavailable(
            f"no sandbox: {machine} has no filter of system calls; use one of {machines}"
        )
    return b"".join(struct.pack("=HBBI", *line) for line in _lines(machine, exemptions))


def _lines(machine: str, exemptions: Collection[Exemption]) -> Iterator[_Line]:
    column = [*_AUDIT_NUMBERS].index(machine)
    yield _LOAD, 0, 0, _MACHINE
    yield _EQUAL, 1, 0, _AUDIT_NUMBERS[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    yield from _refuse_call(_AT_LEAST, _FOREIGN, _KILL)
    yield from _refuse_call(_AT_LEAST, _NEWEST + 1, _NOT_THERE)
    yield from _refuse_call(_EQUAL, _CLONE3, _NOT_THERE)
    for name, numbers in _DENIED.items():
        number = numbers[column]
        if number is not None and name not in exemptions:
            yield from _refuse_call(_EQUAL, number, _NOT_PERMITTED)
    yield from _refuse_call_with(_CLONE[column], _FIRST_ARGUMENT, [(_ANY_BIT, _NEW_USER)])
    if "socketpair" in exemptions:
        family = [(_AT_LEAST, _FIRST_FAMILY_WITH_ADDRESSES)]
        number = _DENIED["socketpair"][column]
        assert number is not None
        yield from _refuse_call_with(number, _FIRST_ARGUMENT, family)
    locks = () if "locks" in exemptions else _LOCKS
    commands = [(_EQUAL, command) for command in (*locks, _LEASE, _NOTIFY, _PIPE_SIZE)]
    yield from _refuse_call_with(_FCNTL[column], _SECOND_ARGUMENT, commands)
    yield _RETURN, 0, 0, _ALLOW


def _refuse_call(operation: int, number: int, answer: int) -> Iterator[_Line]:
    yield operation, 0, 1, number
    yield _RETURN, 0, 0, answer


def _refuse_call_with(number: int, argument: int, tests: list[tuple[int, int]]) -> Iterator[_Line]:
    """Refuses a call if any of these tests is true for the lower half of an argument."""
    inner = [line for test in tests for line in _refuse_call(*test, _NOT_PERMITTED)]
    yield _EQUAL, 0, len(inner) + 2, number
    yield _LOAD, 0, 0, argument
    yield from inner
    yield _RETURN, 0, 0, _ALLOW

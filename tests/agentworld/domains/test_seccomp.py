"""The filter's decisions on a simulated machine; the sandbox's tests use the real kernel."""

import platform
import re
import struct
import subprocess
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.seccomp import filter_of
from agentworld.errors import EnvironmentUnavailable

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE = {"x86_64": 56, "aarch64": 220}
FCNTL = {"x86_64": 72, "aarch64": 25}
CLONE3 = 435
NEWEST = 462
HEADERS = {"aarch64": "asm-generic/unistd.h", platform.machine(): "sys/syscall.h"}
"""The headers with the call numbers of this machine's C library, and of arm64's."""
DENIED = {
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
    *("add_key", "request_key", "keyctl", "memfd_create", "memfd_secret", "socket", "socketpair"),
    *("io_setup", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter"),
    *("io_uring_register", "syslog", "sync", "syncfs", "flock", "inotify_init", "inotify_init1"),
    *("fanotify_init", "name_to_handle_at", "open_by_handle_at", "ptrace", "process_vm_readv"),
    *("process_vm_writev", "pidfd_getfd", "kcmp", "unshare", "setns"),
}
ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NOT_PERMITTED, NOT_IMPLEMENTED = 0x50001, 0x50026
NEW_USER = 0x10000000
DENIED_FCNTL = {5, 6, 7, 36, 37, 38, 1024, 1026, 1031}

machines = pytest.mark.parametrize("machine", list(AUDIT))
words = st.integers(0, 2**32 - 1)


def decide(machine, number, *arguments, audit=None, exemptions=()):
    """Runs the program as the kernel does."""
    program = list(struct.iter_unpack("=HBBI", filter_of(machine, exemptions)))
    two_arguments = [*arguments, 0, 0][:2]
    record = struct.pack("=IIQQQ", number, audit or AUDIT[machine], 0, *two_arguments)
    position = accumulator = 0
    while True:
        code, jump_true, jump_false, value = program[position]
        position += 1
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", record, value)
            continue
        conditions = {
            0x15: accumulator == value,
            0x35: accumulator >= value,
            0x45: bool(accumulator & value),
        }
        position += jump_true if conditions[code] else jump_false


@cache
def numbers(header):
    """The numbers of a header's calls, by name."""
    process = subprocess.run(
        ["g++", "-E", "-dM", "-x", "c", "-include", header, "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    )
    matches = re.findall(r"#define __NR_(\w+) (\d+)$", process.stdout, re.MULTILINE)
    return {name: int(number) for name, number in matches}


@pytest.mark.parametrize("machine", list(HEADERS))
def test_exactly_the_listed_system_calls_are_denied(machine):
    calls = {name: number for name, number in numbers(HEADERS[machine]).items() if number <= NEWEST}
    denied = {name for name, number in calls.items() if decide(machine, number) != ALLOWED}
    assert denied == (DENIED | {"clone3"}) & {*calls}


@machines
@given(flags=words)
def test_a_clone_is_denied_only_for_a_new_user_namespace(machine, flags):
    expected = NOT_PERMITTED if flags & NEW_USER else ALLOWED
    assert decide(machine, CLONE[machine], flags) == expected


@machines
def test_clone3_returns_not_implemented(machine):
    assert decide(machine, CLONE3) == NOT_IMPLEMENTED


@machines
@given(command=st.integers(0, 1100) | words)
def test_fcntl_denies_exactly_the_listed_commands(machine, command):
    expected = NOT_PERMITTED if command in DENIED_FCNTL else ALLOWED
    assert decide(machine, FCNTL[machine], 3, command) == expected


SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
LOCKS = {5, 6, 7, 36, 37, 38}


@machines
@given(family=words)
def test_an_exemption_allows_only_unix_socket_pairs(machine, family):
    expected = ALLOWED if family < 2 else NOT_PERMITTED
    assert decide(machine, SOCKETPAIR[machine], family, exemptions=["socketpair"]) == expected
    assert decide(machine, SOCKETPAIR[machine], family) == NOT_PERMITTED
    assert decide(machine, {"x86_64": 41, "aarch64": 198}[machine], family) == NOT_PERMITTED


@machines
@given(command=st.integers(0, 1100))
def test_an_exemption_allows_file_locks_and_no_other_denied_fcntl_command(machine, command):
    expected = NOT_PERMITTED if command in DENIED_FCNTL - LOCKS else ALLOWED
    assert decide(machine, FCNTL[machine], 3, command, exemptions=["locks"]) == expected


@machines
@given(number=st.integers(NEWEST + 1, 0x3FFFFFFF))
def test_calls_of_newer_kernels_return_not_implemented(machine, number):
    assert decide(machine, number) == NOT_IMPLEMENTED


@machines
@given(number=st.integers(0x40000000, 2**32 - 1))
def test_calls_of_the_second_call_table_kill_the_process(machine, number):
    assert decide(machine, number) == KILLED


@machines
@given(number=st.integers(0, 600), audit=st.integers(1, 2**32 - 1))
def test_calls_of_another_architecture_kill_the_process(machine, number, audit):
    if audit != AUDIT[machine]:
        assert decide(machine, number, audit=audit) == KILLED


def test_an_unknown_architecture_has_no_sandbox():
    with pytest.raises(EnvironmentUnavailable, match="riscv64 has no filter"):
        filter_of("riscv64")

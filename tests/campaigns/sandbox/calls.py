"""System calls by their numbers: those that no limit covers, and those that need a capability."""

import re
import subprocess
from functools import cache

from campaigns.sandbox.attempt import EscapeAttempt, perl

# The kernel must refuse these outright: with EPERM or ENOSYS, for any arguments.
_CLOSED = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
    *("add_key", "request_key", "keyctl", "memfd_create", "socket", "socketpair"),
    *("io_setup", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
    *("io_uring_enter", "io_uring_register", "syslog", "syncfs", "flock", "inotify_init1"),
    *("fanotify_init", "name_to_handle_at", "open_by_handle_at", "ptrace", "process_vm_readv"),
    *("process_vm_writev", "unshare", "setns"),
)
# By number, because today's headers may be older than the kernel.
_CLOSED_NUMBERS = {
    "clone3": 435,
    "pidfd_getfd": 438,
    "memfd_secret": 447,
    "setxattrat": 463,
    "open_tree_attr": 467,
    "one of tomorrow": 500,
}
_NAMESPACES = {
    "mount": 0x20000,
    "cgroup": 0x2000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
# The kernel may check the arguments of these, and must refuse them.
_PRIVILEGED = {
    "mount": '"x", "/home", "tmpfs", 0, 0',
    "umount2": '"/home", 2',
    "pivot_root": '"/home", "/home"',
    "chroot": '"/home"',
    "open_tree": '-100, "/usr", 0x8001',
    "fsopen": '"tmpfs", 0',
    "mount_setattr": '-100, "/usr", 0x8000, pack("QQQQ", 0, 1, 0, 0), 32',
    "sethostname": '"kolu", 4',
    "setdomainname": '"kolu", 4',
    "clock_settime": "0, pack('QQ', 0, 0)",
    "reboot": "0xfee1dead, 672274793, 0, 0",
    "kexec_load": "0, 0, 0, 0",
    "init_module": '"x", 1, ""',
    "delete_module": '"x", 0',
    "swapon": '"/home/x", 0',
    "acct": '"/home/x"',
    "setuid": "0",
    "setgid": "0",
    "setgroups": "1, pack('L', 0)",
    "setresuid": "0, 0, 0",
    "setfsuid": "0",
    "capset": "pack('LL', 0x20080522, 0), pack('L6', 0xffffffff, 0xffffffff, 0, 0, 0, 0)",
    "setpriority": "0, 0, -20",
    "sched_setscheduler": "0, 1, pack('l', 1)",
    "ioprio_set": "1, 0, 0x2000",
    "setrlimit": "6, pack('QQ', 1000, 1000)",
    "mknodat": '-100, "/home/agent/disk", 0x61ff, 0x800',
    "vhangup": "",
    "quotactl": '0x800002, "/dev/x", 0, 0',
    "fchownat": '-100, "/home/agent", 0, 0, 0',
}
_SETS_AND_TELLS = {"setfsuid"}  # returns the previous value, and not whether it succeeded


@cache
def numbers() -> dict[str, int]:
    """The calls of this machine's C library, by name."""
    result = subprocess.run(
        ["g++", "-E", "-dM", "-x", "c", "-include", "sys/syscall.h", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = re.findall(r"#define __NR_(\w+) (\d+)$", result.stdout, re.MULTILINE)
    return {name: int(number) for name, number in pairs}


def attempts() -> list[EscapeAttempt]:
    """Each system call of this machine, once."""
    call_numbers = numbers()
    closed_calls = {
        name: call_numbers[name] for name in _CLOSED if name in call_numbers
    } | _CLOSED_NUMBERS
    return [
        *(_call(name, _closed(number)) for name, number in closed_calls.items()),
        *(
            _call(f"clone a {name}", _cloned(call_numbers["clone"], flag))
            for name, flag in _NAMESPACES.items()
        ),
        *(
            _call(name, _succeeds(name, call_numbers[name], arguments))
            for name, arguments in _PRIVILEGED.items()
            if name in call_numbers
        ),
        *(
            _call(f"fcntl {command}", _fcntl(call_numbers["fcntl"], command))
            for command in (5, 6, 7, 36, 37, 38, 1024, 1026, 1031)
        ),
        _call("the second table", f"syscall({0x40000000 + 39}) > 0 and print STDOUT {_WON}"),
    ]


_WON = '"ES", "CAPED"'


def _call(name: str, script: str) -> EscapeAttempt:
    return EscapeAttempt("calls", name, (perl(script.replace("'", '"')),))


def _closed(number: int) -> str:
    call = f"$r = syscall({number}, 0, 0, 0, 0, 0, 0)"
    return f"{call}; $e = $! + 0; print {_WON} if $r >= 0 or ($e != 1 and $e != 38)"


def _succeeds(name: str, number: int, arguments: str) -> str:
    condition = "$< == 0 or $> == 0" if name in _SETS_AND_TELLS else "$r >= 0"
    return f"@a = ({arguments}); $r = syscall({number}, @a); print {_WON} if {condition}"


def _cloned(number: int, flag: int) -> str:
    call = f"$r = syscall({number}, {flag | 17}, 0, 0, 0, 0); exit if $r == 0"
    return f"{call}; print {_WON} if $r > 0"


def _fcntl(number: int, command: int) -> str:
    open_handles = "open(F, q(<), q(/usr/bin/env)); pipe(R, W)"
    handle = "W" if command == 1031 else "F"
    lock = (
        "pack(q(ssqqlx4), 0, 0, 0, 0, 0)" if command < 1000 else "1048576" if handle == "W" else "0"
    )
    call = f"$l = {lock}; $r = syscall({number}, fileno({handle}), {command}, $l)"
    return f"{open_handles}; {call}; print {_WON} if $r >= 0 or $! + 0 != 1"

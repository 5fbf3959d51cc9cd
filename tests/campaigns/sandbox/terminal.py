"""A live terminal instead of a shell, and attempts specific to its profile."""

from typing import Self

from agentworld.domains.terminal.keys import Keys
from agentworld.domains.terminal.process import SandboxedTerminal
from agentworld.domains.terminal.session import TerminalSession
from campaigns.sandbox.attempt import TOKEN, WON, EscapeAttempt, attempts_of, perl

_SECONDS = 10.0
_HIDDEN = (
    *("kcore", "keys", "key-users", "timer_list", "interrupts", "sched_debug", "scsi/scsi"),
    *("kmsg", "slabinfo", "pagetypeinfo", "vmallocinfo", "acpi/wakeup", "1/environ", "1/maps"),
    *("1/mem", "1/root/usr", "1/cwd/agent", "1/io", "1/syscall", "1/stack", "1/fdinfo/0"),
)
_WRITTEN = (
    *("self/oom_score_adj", "self/mem", "self/comm", "self/uid_map", "self/setgroups"),
    *("self/coredump_filter", "self/clear_refs", "self/attr/current", "self/timerslack_ns"),
    *("sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/drop_caches", "sysrq-trigger"),
    *("sys/kernel/modprobe", "sys/net/ipv4/ip_forward", "irq/default_smp_affinity", "1/comm"),
    *("1/oom_score_adj", "1/mem", "sys/fs/binfmt_misc/register", "sys/kernel/ns_last_pid"),
)
_OUTSIDE = ("/etc/passwd", "/etc/alternatives/../passwd", "/proc/self/root/etc/hosts", "/dev/pts/0")


class _Whole(TerminalSession):
    """Reports all output since the last time, and not only the last screen."""

    @property
    def screen(self) -> str:
        text = self._unshown.decode(errors="replace")
        self._unshown.clear()
        return text


class LiveTerminal:
    """Supports the calls of a `LiveShell`."""

    def __init__(self) -> None:
        self._session: TerminalSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset(self, files: dict[str, str]) -> None:
        self.close()
        self._session = _Whole(SandboxedTerminal(files), _SECONDS)

    def step(self, command: str) -> str:
        assert self._session
        self._session.type([Keys(keystrokes=f"{command}\n", duration=_SECONDS)])
        return self._session.screen.replace("\r", "")

    def files(self) -> dict[str, str]:
        assert self._session
        return self._session.files()

    def close(self) -> None:
        if self._session:
            self._session.close()
            self._session = None


def attempts(secret: str) -> list[EscapeAttempt]:
    """After each attempt, the file `rimo.txt` must still contain `besa`, and `tane.txt` must not
    exist.
    """
    each_file = "for f in /proc/[0-9]*/fd/*"
    claim = "printf 'tane.txt\\0kolu\\0\\0'"
    return attempts_of(
        "terminal",
        *(f"head -c 1 /proc/{path} | grep -q '' && {WON}" for path in _HIDDEN),
        *(f"echo 0 >/proc/{path} && {WON}" for path in _WRITTEN),
        *(f"cat {path} && {WON}; echo {TOKEN} >{path} && {WON}" for path in (*_OUTSIDE, secret)),
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
        "cat /proc/[0-9]*/cmdline /proc/[0-9]*/task/*/cmdline | tr '\\0' '\\n'",
        f"(( $(ls -d /proc/[0-9]* | wc -l) > 9 )) && {WON}",
        f"ls /proc/1/fd/* /proc/1/task/1/fd/* -lL && {WON}",
        f"for i in {{0..63}}; do : <>/proc/1/fd/$i && {WON}; done",
        f"for i in {{0..63}}; do {claim} >/proc/1/fd/$i; done",
        f"for i in {{0..63}}; do {claim} >/proc/1/task/1/fd/$i; done",
        f"{each_file}; do [[ $f -ef /proc/self/fd/0 ]] || {claim} >$f; done",
        f"for p in /proc/[0-9]*; do {claim} >$p/mem && {WON}; done",
        f"grep -s Cap[PEA] /proc/self/status | grep -v 0000000000000000 && {WON}",
        f"grep -s NoNewPrivs /proc/self/status | grep 0 && {WON}",
        "setpriv --inh-caps +wake_alarm --ambient-caps +wake_alarm cat /proc/self/status"
        f" | grep Cap[PEA] | grep -v 0000000000000000 && {WON}",
        f"nsenter -t 1 -p -m true && {WON}; unshare -Ur true && {WON}",
        f"ln -sf /usr/bin/env /etc/alternatives/vi && {WON}",
        f"mount -o remount,rw /proc && {WON}; umount /proc/keys && {WON}",
        f"exec 3</proc/self/root && cd /proc/self/fd/3/../../.. && cat .{secret}",
        f"cat /proc/self/cwd/../../..{secret}",
        f"exec 3<>/dev/ptmx && {WON}; ls /dev/pts/* && {WON}",
        f"for i in {{3..63}}; do echo {TOKEN} >&$i; done; exec 3>/dev/tty && stty -F /dev/tty raw",
        perl("ioctl(STDIN, 0x5412, $_) for split(//, qq(exit\\n))"),
        "printf '\\033]777;123\\a\\033[2J'; stty sane -echo; stty olcuc; printf '\\033[6n\\033c'",
        "kill -9 1; kill -STOP 1; kill -TERM 1; kill -HUP 1; kill -9 -1",
        "kill -9 $PPID; (setsid sleep 1000 &); sleep 1000 &",
        "bomb() { bomb | bomb & }; bomb &",
        f"echo {TOKEN} | tee .bashrc .inputrc .vimrc .profile .lesskey; export PS1={TOKEN} TERM=x",
        f"echo '!echo {TOKEN} >a' | ex a.txt; vi -c 'w! /etc/alternatives/{TOKEN}' -c 'q!' a.txt",
    )

"""Attempts with the sandbox's programs: files, devices, the network, memory, processes."""

from campaigns.sandbox.attempt import TOKEN, WON, EscapeAttempt, attempts_of, perl
from campaigns.sandbox.calls import numbers

_HIDDEN = (
    *("/etc/passwd", "/etc/shadow", "/root", "/tmp", "/var", "/run", "/boot", "/sys", "/proc"),
    *("/proc/1/root", "/proc/self/fd", "/usr/../etc/passwd", "/mnt", "/oldroot", "/newroot"),
)
_DEVICES = (
    *("/dev/sda", "/dev/vda", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/ptmx"),
    *("/dev/net/tun", "/dev/vsock", "/dev/tty", "/dev/loop-control", "/dev/mapper/control"),
)
_FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17, "alg": 38, "vsock": 40}
_LIMITS = ("n 1000", "u 1000", "v unlimited", "f unlimited", "l 64", "q 1", "c 1", "i 999")


def files(secret: str) -> list[EscapeAttempt]:
    """`secret` is a world-readable file of the host."""
    return [
        *attempts_of("files", *(f"ls -d {path} && {WON}" for path in (*_HIDDEN, secret))),
        *attempts_of("files", *(f": <{path} && {WON}" for path in _DEVICES)),
        *attempts_of("files", *(f"{item} && {WON}" for item in _BECOME_ROOT)),
        *attempts_of(
            "files",
            f"ln -s {secret} a; cat a && {WON}",
            f"cd ..; cd ..; cd ..; cd ..; cat .{secret} && {WON}",
            f"ln /usr/bin/env a && {WON}",
            f"echo {TOKEN} >/usr/{TOKEN} && {WON}",
            f"echo {TOKEN} >/dev/{TOKEN} && {WON}",
            f"echo {TOKEN} >/dev/shm/{TOKEN} && {WON}",
            f"echo {TOKEN} >/{TOKEN} && {WON}",
            f"chmod u+s /usr/bin/env && {WON}",
            f"touch /usr/bin/env && {WON}",
            f"mv /usr/bin/env /usr/bin/{TOKEN} && {WON}",
            f"cp /usr/bin/env a && chmod u+s a && ./a id -u | grep -x 0 && {WON}",
            f"mknod a b 8 0 && {WON}",
            f"mount --bind / a && {WON}",
            f"mount -o remount,rw /usr && {WON}",
            f"for i in {{3..63}}; do ls -d /proc/self/fd/$i /dev/fd/$i && {WON}; done",
        ),
    ]


_BECOME_ROOT = (
    *("su -c id", "sudo -n id", "pkexec id", "newgrp root", "/usr/sbin/chroot / id"),
    *("nsenter -t 1 -m id", "setpriv --reuid 0 id", "unshare -Ur id"),
)


def network(port: int, path: str) -> list[EscapeAttempt]:
    """The host also notices connections to its port or socket."""
    sockets = (
        perl(f"socket(S, {number}, {kind}, 0) and print q(ES), q(CAPED)")
        for number in _FAMILIES.values()
        for kind in (1, 2)
    )
    return attempts_of(
        "network",
        f"echo {TOKEN} >/dev/tcp/127.0.0.1/{port} && {WON}",
        f"echo {TOKEN} >/dev/udp/127.0.0.1/{port} && {WON}",
        f"echo {TOKEN} >/dev/tcp/10.0.0.1/80 && {WON}",
        f"echo {TOKEN} >{path} && {WON}",
        *sockets,
    )


def memory() -> list[EscapeAttempt]:
    """More than the limits: 8 MiB in 2048 files, 96 MiB and 64 open files in a process."""
    setxattr, timer_create = numbers()["setxattr"], numbers()["timer_create"]
    call = f"@a = (q(a), qq(user.$_), q(x) x 60000, 60000, 0); syscall({setxattr}, @a) == 0"
    set_timer = f"syscall({timer_create}, 0, 0, my $t = q(12345678)) >= 0"
    return attempts_of(
        "memory",
        "for i in 1 2 3 4 5; do head -c 3m /dev/zero >$i; done"
        f"; (( $(du -sk . | cut -f1) > 8192 )) && {WON}",
        f"(ulimit -f 9000; head -c 5m /dev/zero >a; (( $(wc -c <a) > 4 << 20 )) && {WON})",
        f"i=0; while : >f$((++i)); do :; done; (( i > 2048 )) && {WON}",
        f"i=0; : >a; while (( i < 4000 )) && ln a l$((++i)); do :; done; (( i > 2048 )) && {WON}",
        f"i=0; while (( i < 4000 )) && mkdir d$((++i)); do :; done; (( i > 2048 )) && {WON}",
        perl(f"for (1 .. 5000) {{ symlink(q(x) x 4000, $_) or last; $n += 4000 }} {_past(16)}"),
        perl(f"open F, q(>a); for (1 .. 300) {{ {call} or last; $n += 60000 }} {_past(12)}"),
        perl(f"$a = q(x) x (120 << 20); $n = length $a; {_past(96)}"),
        perl(f"for (1 .. 90) {{ pipe($r[$_], $w[$_]) or last; $n += 2 << 20 }} {_past(128)}"),
        perl(f"for (1 .. 400) {{ {set_timer} or last; $n += 1 << 20 }} {_past(256)}"),
        *(f"ulimit -S{limit} && ulimit -H{limit} && {WON}" for limit in _LIMITS),
        f"head -c 200m /dev/zero | tail -c 150m | wc -c | grep -x $((150 << 20)) && {WON}",
        "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done",
        f"exec 3<>/dev/shm/a && {WON}",
        f"ipcmk -M 4096 && {WON}; ipcmk -Q && {WON}; ipcmk -S 1 && {WON}",
    )


def _past(mebibytes: int) -> str:
    return f"; print q(ES), q(CAPED) if $n > {mebibytes} << 20"


def processes() -> list[EscapeAttempt]:
    """Processes that outlive their episode."""
    return attempts_of(
        "processes",
        "sleep 1000 &",
        "(setsid sleep 1000 &)",
        "nohup sleep 1000 >/dev/null 2>&1 & disown",
        "trap '' HUP TERM INT QUIT; (setsid sleep 1000 &) ",
        "(sleep 1000 & kill -STOP $!)",
        "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0 &); done",
        "bomb() { bomb | bomb & }; bomb &",
        "while :; do sleep 100 & done &",
        "kill -9 1; kill -STOP 1; kill -TERM 1; kill -HUP 1",
        "kill -STOP $PPID",
        "kill -9 $PPID; sleep 1000 &",
        "kill -9 -1; sleep 1000 &",
        "kill -USR1 1",
        "exec sleep 1000",
        "exit",
        "(sleep 0.1; kill -STOP $$) &",
        perl("fork and exit; fork and exit; $0 = q(kolu); sleep 1000") + " &",
        f"kill -0 2000 && {WON}; kill -0 20000 && {WON}",
        f"(for i in {{1..40}}; do sleep 5 & done; (( $(jobs -p | wc -l) > 24 )) && {WON})",
    )

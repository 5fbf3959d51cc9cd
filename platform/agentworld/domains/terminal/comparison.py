"""When two screens say the same: what no predictor can know stands as a fixed word."""

import re

from agentworld.domains.terminal.transcript import PROMPT
from agentworld.domains.volatile import mask_clocks, mask_times

# The names that mktemp and Python's tempfile draw; other names below /tmp are somebody's choice.
_TEMPORARY = re.compile(r"\btmp\.[A-Za-z0-9]{10}(?!\w)|(?<=/tmp/)tmp[a-z0-9_]{8}(?!\w)")
_BACKGROUND = re.compile(r"(?<![&>])&(?![&>])")
_STARTED = re.compile(r"^(\[\d+\]) \d+$")
_LISTED = re.compile(r"^(\[\d+\][+ -] +)\d+( +(?:Running|Stopped|Done|Exit|Killed|Terminated)\b)", re.M)
_TOP = re.compile(r"^top - \d\d:\d\d:\d\d up .*load average: .*$", re.M)
_COUNTS = re.compile(
    r"^(Tasks|Threads|%Cpu\(s\)|[KMGT]iB (?:Mem|Swap)) *: +[\d.]+ (?:total|us),.*$", re.M
)
_TOP_ROW = re.compile(
    r"^ *\d+ (\S+) +(?:\d+|rt) +-?\d+(?: +[\d.]+[kmgt]?){3} [A-Z](?: +[\d.]+){2} +\d+:\d\d\.\d\d (.*)$",
    re.M,
)
_TTY = r"(?:pts/\d+|tty\d*|\?)"
_PS_ROW = re.compile(rf"^ *\d+ {_TTY} +\d\d:\d\d:\d\d (.*)$", re.M)
_PS_FULL_ROW = re.compile(
    rf"^(\S+) +\d+ +\d+ +\d+ (?:\d\d:\d\d|[A-Z][a-z]{{2}}\d\d) {_TTY} +\d\d:\d\d:\d\d (.*)$", re.M
)
_PS_USER_ROW = re.compile(
    rf"^(\S+) +\d+(?: +\d+\.\d){{2}}(?: +\d+){{2}} {_TTY} +(\S+) +"
    r"(?:\d\d:\d\d|[A-Z][a-z]{2}\d\d) +\d+:\d\d (.*)$",
    re.M,
)
_UPTIME = re.compile(r"^ \d\d:\d\d:\d\d up .*load average: .*$", re.M)


def canonical(screen: str) -> str:
    """Spaces at the ends of lines, and empty lines at the bottom, do not count."""
    return "\n".join(line.rstrip() for line in screen.split("\n")).rstrip("\n")


def mask_volatile(screen: str) -> str:
    """Times, ids of processes, names that a program drew, and what `top` measures."""
    screen = _TEMPORARY.sub("<name>", mask_clocks(mask_times(_mask_jobs(screen))))
    screen = _UPTIME.sub("<uptime>", _TOP.sub("top - <time>", screen))
    screen = _TOP_ROW.sub(r"<process> \1 \2", _COUNTS.sub(r"\1: <counts>", screen))
    screen = _PS_FULL_ROW.sub(r"<process> \1 \2", _PS_ROW.sub(r"<process> \1", screen))
    return _PS_USER_ROW.sub(r"<process> \1 \2 \3", screen)


def _mask_jobs(screen: str) -> str:
    """The ids of jobs: where a command had started one, and in what `jobs -l` lists."""
    has_started, lines = False, []
    for line in screen.split("\n"):
        if match := PROMPT.match(line):
            has_started = bool(_BACKGROUND.search(match["command"] or ""))
        lines.append(_STARTED.sub(r"\1 <id>", line) if has_started else line)
    return _LISTED.sub(r"\1<id>\2", "\n".join(lines))


def is_same(one: str, other: str) -> bool:
    """Whether two screens are equal, apart from volatile parts."""
    return mask_volatile(canonical(one)) == mask_volatile(canonical(other))

"""Compares two screens; fixed words replace what cannot be predicted."""

import re

from agentworld.domains.terminal.transcript import PROMPT
from agentworld.domains.volatile import mask_clocks, mask_times

_BACKGROUND = re.compile(r"(?<![&>])&(?![&>])")
_STARTED = re.compile(r"^(\[\d+\]) \d+$")
_TTY = r"(?:pts/\d+|tty\d*|\?)"
_DAY = r"(?:\d\d:\d\d|[A-Z][a-z]{2}\d\d)"
_TIME = r"\d\d:\d\d:\d\d"
_MASKS = [
    (re.compile(pattern), word)
    for pattern, word in (
        # names that mktemp and Python's tempfile generate; agents choose other names below /tmp
        (r"\btmp\.[A-Za-z0-9]{10}(?!\w)|(?<=/tmp/)tmp[a-z0-9_]{8}(?!\w)", "<name>"),
        # jobs -l
        (
            r"^(\[\d+\][+ -]) +\d+( +(?:Running|Stopped|Done|Exit|Killed|Terminated)\b)",
            r"\1 <id>\2",
        ),
        # uptime, top
        (rf"^ {_TIME} up .*load average: .*$", "<uptime>"),
        (rf"^top - {_TIME} up .*load average: .*$", "top - <time>"),
        (
            r"^(Tasks|Threads|%Cpu\(s\)|[KMGT]iB (?:Mem|Swap)) *: +[\d.]+ (?:total|us),.*$",
            r"\1: <counts>",
        ),
        (
            r"^ *\d+ (\S+) +(?:\d+|rt) +-?\d+(?: +[\d.]+[kmgt]?){3} [A-Z](?: +[\d.]+){2}"
            r" +\d+:\d\d\.\d\d (.*)$",
            r"<process> \1 \2",
        ),
        # ps, ps -ef, ps aux
        (rf"^ *\d+ {_TTY} +{_TIME} (.*)$", r"<process> \1"),
        (rf"^(\S+) +\d+ +\d+ +\d+ {_DAY} {_TTY} +{_TIME} (.*)$", r"<process> \1 \2"),
        (
            rf"^(\S+) +\d+(?: +\d+\.\d){{2}}(?: +\d+){{2}} {_TTY} +(\S+) +{_DAY} +\d+:\d\d (.*)$",
            r"<process> \1 \2 \3",
        ),
    )
]


def canonical(screen: str) -> str:
    """The screen without spaces at line ends and empty lines at the bottom."""
    return "\n".join(line.rstrip() for line in screen.split("\n")).rstrip("\n")


def mask_volatile(screen: str) -> str:
    """Masks times, ids of processes, generated names, and the measurements of `top`."""
    return "\n".join(map(_mask_line, _lines_without_jobs(screen)))


def is_same(one: str, other: str) -> bool:
    """Whether two screens are equal, apart from volatile parts; to mask each line would be slow."""
    lines, others = _lines_without_jobs(canonical(one)), _lines_without_jobs(canonical(other))
    return len(lines) == len(others) and all(
        line == same or _mask_line(line) == _mask_line(same)
        for line, same in zip(lines, others, strict=True)
    )


def _mask_line(line: str) -> str:
    line = mask_clocks(mask_times(line))
    for pattern, word in _MASKS:
        line = pattern.sub(word, line)
    return line


def _lines_without_jobs(screen: str) -> list[str]:
    """The lines, with ids of jobs masked only if a command started a job, because R prints numbers
    in the same form.
    """
    lines, has_started = screen.split("\n"), False
    if "&" not in screen:
        return lines
    for number, line in enumerate(lines):
        if match := PROMPT.match(line):
            has_started = bool(_BACKGROUND.search(match["command"] or ""))
        lines[number] = _STARTED.sub(r"\1 <id>", line) if has_started else line
    return lines

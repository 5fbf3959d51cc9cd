"""When two screens say the same: what no predictor can know stands as a fixed word."""

import re

from agentworld.domains.volatile import is_equal_masked, mask_clocks, mask_times

_TEMPORARY = re.compile(r"/(?:var/)?tmp/[^\s\"'\\,)\]}]+")
_JOB = re.compile(r"^(\[\d+\][+-]?\s+)\d+\b", re.MULTILINE)
_TOP = re.compile(r"^top - .*$", re.MULTILINE)
_COUNTS = re.compile(r"^(Tasks|Threads|%Cpu\(s\)|[MKG]iB Mem|[MKG]iB Swap)\s*:.*$", re.MULTILINE)
_TOP_ROW = re.compile(r"^ *\d+ \S+ +(?:\d+|rt) +-?\d+ .*\d+:\d\d\.\d\d (.*)$", re.MULTILINE)
_PS_ROW = re.compile(r"^ *\d+ (\S+) +\d\d:\d\d:\d\d (.*)$", re.MULTILINE)
_UPTIME = re.compile(r"^ \d\d:\d\d:\d\d up .*load average: .*$", re.MULTILINE)


def canonical(screen: str) -> str:
    """Spaces at the ends of lines, and empty lines at the bottom, do not count."""
    return "\n".join(line.rstrip() for line in screen.split("\n")).rstrip("\n")


def mask_volatile(screen: str) -> str:
    """Times, ids of processes, temporary paths, and what `top` measures."""
    screen = _TEMPORARY.sub("<path>", mask_clocks(mask_times(screen)))
    screen = _JOB.sub(r"\1<id>", _UPTIME.sub("<uptime>", _TOP.sub("top - <time>", screen)))
    screen = _TOP_ROW.sub(r"<process> \1", _COUNTS.sub(r"\1: <counts>", screen))
    return _PS_ROW.sub(r"<id> \1 <time> \2", screen)


def is_same(one: str, other: str) -> bool:
    """Whether two screens are equal, apart from volatile parts."""
    return is_equal_masked(canonical(one), canonical(other), mask_volatile)

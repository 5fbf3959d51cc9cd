"""A judge's findings: broken promises."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """One broken promise."""

    kind: str
    """One of the judge's `PROMISES`."""
    problem: str
    """The problem as text, with the values."""
    subject: str = ""
    """The subject of the finding; several findings may have the same."""

    @property
    def sentence(self) -> str:
        return f"{self.kind}: {self.problem}"


def mistakes(logs: Iterable[Path], code: Iterable[str] = ("",)) -> Iterator[Finding]:
    """Each traceback in a log with a frame in this code: an unexpected failure."""
    for log in logs:
        for block in log.read_text(errors="replace").split("Traceback")[1:]:
            trace, *_ = block.split("\n20")  # a line of the log begins with its year
            if any(item in trace for item in code):
                _, *lines = [line for line in trace.splitlines() if line.strip(" |+-")]
                error = next((line for line in lines if line[0].strip()), lines[-1])
                yield Finding("mistaken", f"{log.name} has {error[:300]}", log.name)

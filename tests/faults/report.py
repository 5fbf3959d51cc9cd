"""What a campaign is told as: how many faults of which kind, and what was found afterwards."""

import json
from collections import Counter
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from faults.checker import check
from faults.finding import Kind
from faults.journal import read

_MOST_SENTENCES = 20


class Report(BaseModel):
    """One campaign, or several together."""

    faults: int
    """Those that hit somebody; see `Crew.count`."""
    found: dict[Kind, int]
    """Broken promises; see `finding`."""
    accused: int
    """Problems that our own audit tells of the ledger."""
    mistakes: int
    """Tracebacks in the logs of the services."""
    sentences: list[str]
    """The first of what was found."""
    answered_steps: int
    """With those that were asked again."""
    steps: int
    """In the ledger."""
    episodes: int
    runs: int
    said: int
    """Texts of engines."""
    unanswered: int
    """Requests of clients that a connection lost."""
    refusals: dict[str, int]
    """Answers that are typed failures."""
    by_kind: dict[str, int]
    """Faults."""
    seconds: float

    @classmethod
    def of(cls, folder: Path, ledger_url: str, accused: list[str], seconds: float) -> "Report":
        """Judges what a campaign left."""
        verdict, mistakes = check(folder, ledger_url), _mistakes(folder)
        faults = Counter(f"{f['layer']}: {f['kind']}" for f in read(folder / "faults.jsonl"))
        books, heard = verdict.books, verdict.heard
        told = [f"{finding.kind}: {finding.told}" for finding in verdict.findings]
        return cls(
            faults=faults.total(),
            found={kind: verdict.count(kind) for kind in get_args(Kind)},
            accused=len(accused),
            mistakes=len(mistakes),
            sentences=[*told, *accused, *mistakes][:_MOST_SENTENCES],
            answered_steps=len(heard.answers),
            steps=sum(len(episode.steps) for episode in books.episodes.values()),
            episodes=len(books.episodes),
            runs=len(books.runs),
            said=verdict.num_said,
            unanswered=heard.lost,
            refusals=heard.refusals,
            by_kind=dict(sorted(faults.items())),
            seconds=round(seconds, 1),
        )

    @property
    def clean(self) -> bool:
        """Nothing was broken."""
        return not any((*self.found.values(), self.accused, self.mistakes))

    def plus(self, other: "Report") -> "Report":
        """Both campaigns as one."""
        mine, others = self.model_dump(), other.model_dump()
        return Report.model_validate({name: _sum(mine[name], others[name]) for name in mine})

    def written(self) -> str:
        """As JSON, with the broken promises as keys of their own."""
        told = self.model_dump()
        whole = {"faults": told.pop("faults"), **told.pop("found"), **told}
        return json.dumps(whole, indent=2) + "\n"


def _mistakes(folder: Path) -> list[str]:
    """The last line of each traceback: what our own code did not expect."""
    found = []
    for path in sorted(folder.glob("service-*.log")):
        begun = False
        for line in path.read_text(errors="replace").splitlines():
            if begun and line[:1].strip():
                found.append(f"{path.name}: {line}")
                begun = False
            begun = begun or line.startswith("Traceback")
    return found


def _sum(one: object, other: object) -> object:
    match one, other:
        case dict(), dict():
            return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}
        case list(), list():
            return one + other
        case int() | float(), int() | float():
            return one + other
    raise ValueError(f"{one!r} and {other!r} have no sum")

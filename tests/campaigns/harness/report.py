"""A campaign's statistics and its judge's findings: as JSON for programs, as text for people."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from campaigns.harness.finding import Finding
from campaigns.harness.journal import read

MOST_SENTENCES = 20


class Report(BaseModel):
    """The report of one campaign, or of several."""

    seed: str = ""
    sentences: list[str] = []
    """The first problems."""
    by_kind: dict[str, int] = {}
    """The number of each kind of fault or mutation."""
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether there are no findings."""
        return not self.sentences

    def plus(self, other: Self) -> Self:
        """The sum of both campaigns."""
        own_fields, other_fields = self.model_dump(), other.model_dump()
        total = type(self).model_validate(
            {name: _sum(own_fields[name], other_fields[name]) for name in own_fields}
        )
        return total.model_copy(update={"sentences": total.sentences[:MOST_SENTENCES]})

    def as_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"

    def as_text(self) -> str:
        """The numbers, then the problems."""
        fields = self.model_dump(exclude={"sentences"})
        lines = [f"{name:20} {value}" for name, value in fields.items()]
        return "\n".join([*lines, *(self.sentences or ["nothing found"])])


class FaultReport(Report):
    """The results of a program under faults."""

    faults: int
    """Faults that affected a request or a process."""
    found: dict[str, int]
    """Broken promises by kind; see `PROMISES` of the judge."""

    @classmethod
    def of(
        cls, folder: Path, findings: Sequence[Finding], promises: Iterable[str], **fields: Any
    ) -> Self:
        """Built from the journal of faults and the judge's findings."""
        kinds = count(line["kind"] for line in read(folder / "faults.jsonl"))
        counts = count(finding.kind for finding in findings)
        return cls(
            faults=sum(kinds.values()),
            by_kind=kinds,
            found={kind: counts.get(kind, 0) for kind in promises},
            sentences=[finding.sentence for finding in findings[:MOST_SENTENCES]],
            **fields,
        )


def count(kinds: Iterable[str]) -> dict[str, int]:
    """The count of each kind, by name."""
    return dict(sorted(Counter(kinds).items()))


def _sum(one: object, other: object) -> object:
    match one, other:
        case dict(), dict():
            return {name: one.get(name, 0) + other.get(name, 0) for name in sorted(one | other)}
        case (list(), list()) | (int() | float(), int() | float()):
            return one + other
        case _ if one == other:
            return one
    raise ValueError(f"{one!r} and {other!r} have no sum")

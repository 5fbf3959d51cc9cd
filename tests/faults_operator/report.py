"""What a campaign is told as: how many faults of which kind, and what did not converge."""

import json
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from faults_operator.finding import Finding

_MOST_SENTENCES = 20


class Report(BaseModel):
    """One campaign."""

    faults: int
    """That hit somebody."""
    diverged: int
    """Objects that were not as their spec wants them a while after the last fault, and other
    broken promises.
    """
    seed: str
    sentences: list[str]
    """The first of what was found, and how to run it again."""
    batches: int
    converge_seconds: list[float]
    """After the last fault of each batch."""
    controllers: int
    """Times that Kubernetes' own controllers had forgotten what they owed, and were begun anew."""
    objects: int
    """Judged, over all batches."""
    moves: dict[str, int]
    """Of names, by what people were answered."""
    deeds: int
    """Of people that were taken."""
    refused: int
    """Of people that were not, mostly for there was nothing to do it to."""
    writes: int
    """Of the operators, leases apart."""
    lives: dict[str, int]
    """Of each process."""
    by_kind: dict[str, int]
    """Faults."""
    seconds: float

    @property
    def written(self) -> str:
        """As JSON."""
        return json.dumps(self.model_dump(), indent=2) + "\n"


def diverged(findings: list[Finding]) -> int:
    """How many objects they are about."""
    return len({finding.about.partition(",")[0] for finding in findings})


def sentences(findings: list[Finding], faults: int, seed: str, folder: Path) -> list[str]:
    """What was found, and how to see it again."""
    told = [finding.told for finding in findings[:_MOST_SENTENCES]]
    again = f"python -m faults_operator.main --faults {faults} --seed {seed}; logs in {folder}"
    return [*told, again] if told else []


def counted(kinds: list[str]) -> dict[str, int]:
    """By name."""
    return dict(sorted(Counter(kinds).items()))

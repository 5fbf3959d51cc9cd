"""Which episodes of a run were erased by somebody who said so."""

from collections.abc import Iterable
from typing import NamedTuple

from agentworld.audit.checks.mirror import check_statements, find_rows, verified_rows
from agentworld.audit.read.declarations import Losses
from agentworld.audit.read.evidence import Evidence
from agentworld.errors import EvidenceError
from agentworld.ledger.attestations import Attestations
from agentworld.records.statements.erasure import Erasure


class Erasures(NamedTuple):
    """The erasures that were declared in a run, or before any were."""

    run: str
    attestations: Attestations
    evidence: Evidence
    at_genesis: frozenset[str] | None
    """Episodes that were erased before; null where nobody signs what is erased."""
    declared: frozenset[str]
    problems: tuple[str, ...]

    @classmethod
    def of(
        cls, run: str, attestations: Attestations, losses: Losses, evidence: Evidence
    ) -> "Erasures":
        """Those of a run; asked for before its episodes are read."""
        checked = check_statements(Erasure, attestations, evidence, of=run, lost=losses.names)
        problems = [*checked.problems]
        try:
            at_genesis = evidence.read_declarations(attestations).erased
        except EvidenceError as error:
            at_genesis = frozenset()  # what it names is then of nobody
            problems.append(f"what the ledger held unsigned does not verify: {error}")
        declared = _episodes(checked.verified.values())
        return cls(run, attestations, evidence, at_genesis, declared, tuple(problems))

    def problem_of(self, episode: str, *, erased: bool) -> str | None:
        """What is wrong with an episode that was read, with its texts or without."""
        if not erased:
            if episode in self.declared:
                return f"episode {episode} was erased, and its texts are there again"
            return None
        if self.at_genesis is None or episode in self.at_genesis | self.declared:
            return None
        # It may have been just now.
        rows = find_rows(Erasure, self.attestations, self.run)
        declared = _episodes(verified_rows(rows, Erasure, self.evidence.of_now))
        return None if episode in declared else f"episode {episode} is erased without a declaration"


def _episodes(erasures: Iterable[Erasure]) -> frozenset[str]:
    return frozenset(erasure.episode for erasure in erasures)

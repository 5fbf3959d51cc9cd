"""Which episodes of a run were erased by somebody who said so."""

from typing import NamedTuple

from agentworld.audit.checks.losses import Losses
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.errors import EvidenceError
from agentworld.ledger.attestations import Attestations
from agentworld.records.declaration import ERASURES, Erasure
from agentworld.signing.declaration import check_attested


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
        # The copies first: what is erased meanwhile is in the ledger before it has one.
        copies = copies_of(f"{ERASURES}/{run}", evidence.mirror)
        names = {attestation.name for attestation in attestations.find("erasure", run=run)}
        missing = [name for name in sorted(copies.keys() - names) if name not in losses.names]
        problems = [f"the erasure {name} is gone from the ledger; restore it" for name in missing]
        try:
            at_genesis = evidence.read_declarations(attestations).erased
        except EvidenceError as error:
            at_genesis = frozenset()  # what it names is then of nobody
            problems.append(f"what the ledger held unsigned does not verify: {error}")
        declared, unverified = _load_declared(run, attestations, evidence)
        return cls(run, attestations, evidence, at_genesis, declared, (*problems, *unverified))

    def problem_of(self, episode: str, *, erased: bool) -> str | None:
        """What is wrong with an episode that was read, with its texts or without."""
        if not erased:
            if episode in self.declared:
                return f"episode {episode} was erased, and its texts are there again"
            return None
        if self.at_genesis is None or episode in self.at_genesis | self.declared:
            return None
        # It may have been just now.
        declared, _ = _load_declared(self.run, self.attestations, self.evidence)
        return None if episode in declared else f"episode {episode} is erased without a declaration"


def _load_declared(
    run: str, attestations: Attestations, evidence: Evidence
) -> tuple[frozenset[str], list[str]]:
    episodes, problems = set(), []
    for attestation in attestations.find("erasure", run=run):
        try:
            episodes.add(check_attested(attestation, Erasure, evidence.trusted).episode)
        except EvidenceError as error:
            problems.append(
                f"the erasure of episode {attestation.subject} does not verify: {error}"
            )
    return frozenset(episodes), problems

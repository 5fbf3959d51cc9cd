"""Signs statements beside the logs of runs, with a copy in the evidence mirror.

The ledger stores a statement first. If the process is killed before the copy, the signature is
valid, and the next equal request or a periodic task makes the copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentworld.errors import EvidenceError, NotFound
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, now
from agentworld.records.log import opening_problem
from agentworld.records.run import AgentRun
from agentworld.records.statements.base import Declare, SignedRecord
from agentworld.records.statements.edge import Claim, Edge, SignedEdge
from agentworld.records.step_statement import StepStatement
from agentworld.signing.checkpoint import RunCheckpoint, checkpoint_name, verify_checkpoint
from agentworld.signing.edge import RunEvidence, contradictions, join
from agentworld.signing.envelope import attest, verify_envelope
from agentworld.signing.weights import closing_problem
from agentworld.statements.genesis import LedgerGenesis
from agentworld.statements.steps import Files

_MANY = 100


class StatementSigner(LedgerGenesis):
    """Signs for one ledger.

    Calls block; several replicas may sign the same, which is stored once.
    """

    _last_copied = 0
    """The position up to which every copy was made."""

    def edge(self, run: AgentRun, claim: Claim) -> SignedEdge:
        """The edge for a claim, by the current records; a repeated request is signed once."""
        self.ensure_genesis()
        edge = join(claim, self._observe(run, claim), now())
        attestation = self._find_same(edge)
        if attestation is None:
            attestation = attest(edge, self._signer())
            self._ledger.attestations.add(attestation)
        self._mirror.put(attestation.name, attestation.envelope)
        return SignedEdge(
            edge=verify_envelope(attestation.envelope, Edge, self.known_keys()),
            envelope=attestation.envelope.decode(),
        )

    def edges(self, name: str, artifact: Digest, run: str) -> Iterator[tuple[Attestation, Edge]]:
        """The signed edges of a run, an artifact and a name, the newest first."""
        rows = self._ledger.attestations.find("edge", subject=artifact, run=run)
        for attestation in reversed(rows):
            with suppress(EvidenceError):  # the audit reports it
                edge = verify_envelope(attestation.envelope, Edge, self.known_keys())
                if (edge.claim.agent, edge.claim.artifact, edge.run) == (name, artifact, run):
                    yield attestation, edge

    def file(self, statement: StepStatement) -> str:
        """Stores a step's signed statement; returns its name.

        Raises InputError if no step signed it.
        """
        keys = self._step_keys(), self.known_keys()
        return Files(self._ledger.attestations, self._mirror, *keys).add(statement)

    @contextmanager
    def declaring(self, kind: str, subject: str) -> Iterator[Declare]:
        """Signs the declarations that the block makes about a subject, and copies them at its end.

        If a declaration is repeated, an existing one gets a missing copy.
        """
        self.ensure_genesis()
        yield lambda declaration: attest(declaration, self._signer())
        attestations = self._ledger.attestations.find(kind, subject=subject)
        # A single one is copied without listing its folder: a run may have thousands of erasures.
        folders = (
            {attestation.name.rpartition("/")[0] for attestation in attestations}
            if len(attestations) > 1
            else set()
        )
        self._copy(attestations, folders)

    def declare(self, declaration: SignedRecord) -> None:
        """Signs and stores an operator's declaration: a restore, a withdrawal."""
        with self.declaring(declaration.kind, declaration.columns.subject) as declare:
            self._ledger.attestations.add(declare(declaration))

    def copy_missing(self) -> None:
        """Makes missing copies of killed processes; raises EvidenceError for an invalid record.

        Records that were checked are not checked again.
        """
        self.ensure_genesis()
        attestations, sequence = self._ledger.attestations.after(self._last_copied)
        folders = {attestation.name.rpartition("/")[0] for attestation in attestations}
        if len(folders) > _MANY:  # as at the start of a service: one listing of all is cheaper
            folders = {attestation.name.partition("/")[0] for attestation in attestations}
        if problems := self._copy(attestations, folders):
            raise EvidenceError("; ".join(problems))
        self._last_copied = sequence

    def _find_same(self, edge: Edge) -> Attestation | None:
        """The newest edge of this run, artifact and name, if it is equal."""
        claim = edge.claim
        for attestation, earlier in self.edges(claim.agent, claim.artifact, edge.run):
            return attestation if earlier.model_copy(update={"at": edge.at}) == edge else None
        return None

    def _observe(self, run: AgentRun, claim: Claim) -> RunEvidence:
        first = self._ledger.logs.first_entry(run.id)
        checks = opening_problem(run, first), closing_problem(run, self._step_keys())
        problems = [problem for problem in checks if problem]
        checkpoint = None
        try:
            checkpoint = self._newest(run)
        except (EvidenceError, NotFound) as error:
            problems.append(f"the newest checkpoint does not verify: {error}")
        same = self._ledger.runs(final_weights=claim.artifact)
        return RunEvidence(run, checkpoint, tuple(problems), tuple(contradictions(run, same)))

    def _newest(self, run: AgentRun) -> RunCheckpoint | None:
        """The newest checkpoint, which both stores have; null if nothing was signed yet."""
        stored = self._ledger.logs.checkpoints(run.id)
        if not stored:
            return None
        length = max(stored)
        checkpoint = verify_checkpoint(stored[length], self._trusted())
        if (checkpoint.run, checkpoint.simulator, checkpoint.length) != (
            run.id,
            run.simulator,
            length,
        ):
            raise EvidenceError(f"it was signed for run {checkpoint.run}; find out who moved it")
        if self._mirror.get(checkpoint_name(run.id, length)) != stored[length]:
            raise EvidenceError("the evidence mirror holds another one; find out which is true")
        return checkpoint

"""Signing what the platform knows beside the logs of runs, with a copy where nothing is changed.

The ledger keeps it first: who is killed before the copy is made leaves a signature that holds, and
the next one who asks the same makes the copy.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

from agentworld.errors import EvidenceError, NotFound
from agentworld.evidence.checkpoint import RunCheckpoint, checkpoint_name, verify_checkpoint
from agentworld.evidence.edge import Observed, join, sign_edge, verify_edge
from agentworld.evidence.keys import Signer, TrustedKeys
from agentworld.evidence.weights import RunWeights, check_weights
from agentworld.ledger import Ledger
from agentworld.records.attestation import Attestation
from agentworld.records.base import digest_bytes
from agentworld.records.edge import Claim, Edge, SignedEdge
from agentworld.records.run import AgentRun
from agentworld.storage.objects import WriteOnce

EDGES = "agent-edges"
"""Where the copies of edges are: a run's name has no dash, so that no checkpoint is there."""


class Notary:
    """Of one ledger. Calls block; several replicas may sign the same, which is kept once."""

    def __init__(
        self,
        ledger: Ledger,
        signer: Callable[[], Signer],
        second_store: WriteOnce,
        *,
        trusted: Callable[[], TrustedKeys],
        step_keys: Callable[[], TrustedKeys],
    ) -> None:
        self._ledger = ledger
        self._signer = signer
        self._second_store = second_store
        self._trusted = trusted
        self._step_keys = step_keys

    def edge(self, run: AgentRun, claim: Claim) -> SignedEdge:
        """What can be said of a claim by now; the same again is signed once."""
        edge = join(claim, self._observed(run, claim), _now())
        known = self._known(edge)
        if known is None:
            envelope = sign_edge(edge, self._signer())
            name = edge_name(run.id, envelope)
            known = Attestation(
                name, "edge", claim.artifact, run.simulator, run.id, edge.at, envelope
            )
            self._ledger.attestations.add(known)
        self._second_store.put(known.name, known.envelope)
        return SignedEdge(
            edge=verify_edge(known.envelope, self._trusted()), envelope=known.envelope.decode()
        )

    def _known(self, edge: Edge) -> Attestation | None:
        """The newest of this run and artifact and name, where it says the same."""
        of = {"subject": edge.claim.artifact, "run": edge.run}
        for each in reversed(self._ledger.attestations.find("edge", **of)):
            with suppress(EvidenceError):
                told = verify_edge(each.envelope, self._trusted())
                if told.claim.agent == edge.claim.agent:
                    return each if told.model_copy(update={"at": edge.at}) == edge else None
        return None

    def _observed(self, run: AgentRun, claim: Claim) -> Observed:
        problems = [*self._closing_problems(run)]
        checkpoint = None
        try:
            checkpoint = self._newest(run)
        except (EvidenceError, NotFound) as error:
            problems.append(f"the newest checkpoint does not verify: {error}")
        same = self._ledger.runs_for_agent_weights(claim.artifact)
        contradicting = tuple(other.id for other in same if other.simulator != run.simulator)
        return Observed(run, checkpoint, tuple(problems), contradicting)

    def _newest(self, run: AgentRun) -> RunCheckpoint | None:
        """The newest checkpoint, which both stores hold; null where nothing was signed yet."""
        stored = self._ledger.checkpoints(run.id)
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
        if self._second_store.get(checkpoint_name(run.id, length)) != stored[length]:
            raise EvidenceError("the second store holds another one; find out which is true")
        return checkpoint

    def _closing_problems(self, run: AgentRun) -> Iterator[str]:
        closing = run.closing
        if closing is None or closing.signature is None:
            return
        made = RunWeights(run=run.id, simulator=run.simulator, weights=closing.final_weights)
        try:
            check_weights(made, closing.signature, self._step_keys())
        except EvidenceError as error:
            yield f"what the run made is not signed by the step that wrote it: {error}"


def edge_name(run: str, envelope: bytes) -> str:
    """Where the copy of an edge is."""
    return f"{EDGES}/{run}/{digest_bytes(envelope).removeprefix('sha256:')}.dsse.json"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

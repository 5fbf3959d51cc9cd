"""The weights that a run produced, signed by the step that wrote them.

Without such a statement, the weights in a run's closing are only a claim.
"""

from agentworld.errors import EvidenceError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import text_bytes
from agentworld.records.run import AgentRun
from agentworld.signing.envelope import Statement, Subject, read_predicate, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys

PREDICATE_TYPE = "urn:agentworld:run-weights:v1"


class RunWeights(Record):
    """A run in one simulator produced these weights."""

    run: str
    simulator: Digest
    weights: Digest


def sign_weights(run_weights: RunWeights, signer: Signer) -> str:
    """A DSSE envelope, as `RunClosing.signature` holds it."""
    return sign(_statement(run_weights), signer).decode()


def check_weights(run_weights: RunWeights, signature: str, trusted: TrustedKeys) -> None:
    """Raises EvidenceError unless a trusted key signed exactly this."""
    statement = verify(text_bytes(signature), trusted)
    signed = read_predicate(statement, RunWeights, "run's weights", _statement)
    if signed != run_weights:
        raise EvidenceError(
            f"what was signed is {signed.weights} of run {signed.run}, and not"
            f" {run_weights.weights} of run {run_weights.run}"
        )


def closing_problem(run: AgentRun, trusted: TrustedKeys) -> str | None:
    """The reason why the signature in a run's closing is invalid; null if it is valid."""
    closing = run.closing
    if closing is None or closing.signature is None:
        return None
    run_weights = RunWeights(run=run.id, simulator=run.simulator, weights=closing.final_weights)
    try:
        check_weights(run_weights, closing.signature, trusted)
    except EvidenceError as error:
        return f"what the run made is not signed by the step that wrote it: {error}"
    return None


def _statement(run_weights: RunWeights) -> Statement:
    return Statement(
        subject=(Subject.of("weights", run_weights.weights),),
        predicate_type=PREDICATE_TYPE,
        predicate=run_weights.model_dump(mode="json"),
    )

"""Which weights a run made, as the step that wrote them signs it.

A run that is closed without such a statement names its weights as a mere claim.
"""

from agentworld.errors import EvidenceError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import text_bytes
from agentworld.records.run import AgentRun
from agentworld.signing.envelope import sign, told_by, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

PREDICATE_TYPE = "urn:agentworld:run-weights:v1"


class RunWeights(Record):
    """A run in one simulator made these weights."""

    run: str
    simulator: Digest
    weights: Digest


def sign_weights(made: RunWeights, signer: Signer) -> str:
    """A DSSE envelope, as `RunClosing.signature` holds it."""
    return sign(_statement(made), signer).decode()


def check_weights(made: RunWeights, signature: str, trusted: TrustedKeys) -> None:
    """Raises EvidenceError where no trusted key signed just this."""
    statement = verify(text_bytes(signature), trusted)
    signed = told_by(statement, RunWeights, "run's weights", _statement)
    if signed != made:
        raise EvidenceError(
            f"what was signed is {signed.weights} of run {signed.run}, and not {made.weights} of"
            f" run {made.run}"
        )


def closing_problem(run: AgentRun, trusted: TrustedKeys) -> str | None:
    """Why the signature that a run was closed with does not hold; null where there is none."""
    closing = run.closing
    if closing is None or closing.signature is None:
        return None
    made = RunWeights(run=run.id, simulator=run.simulator, weights=closing.final_weights)
    try:
        check_weights(made, closing.signature, trusted)
    except EvidenceError as error:
        return f"what the run made is not signed by the step that wrote it: {error}"
    return None


def _statement(made: RunWeights) -> Statement:
    return Statement(
        subject=(Subject.of("weights", made.weights),),
        predicate_type=PREDICATE_TYPE,
        predicate=made.model_dump(mode="json"),
    )

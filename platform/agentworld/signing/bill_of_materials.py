"""An agent's bill of materials, signed as in-toto's predicate for CycloneDX."""

from agentworld.records.base import Digest, JsonObject
from agentworld.signing.envelope import Statement, Subject, sign
from agentworld.signing.keys import Signer

PREDICATE_TYPE = "https://cyclonedx.org/bom"


def sign_bill(bill: JsonObject, agent: str, artifact: Digest, signer: Signer) -> bytes:
    """A DSSE envelope of an in-toto statement, whose subject is the agent's artifact."""
    subject = Subject.of(agent, artifact)
    statement = Statement(subject=(subject,), predicate_type=PREDICATE_TYPE, predicate=bill)
    return sign(statement, signer)

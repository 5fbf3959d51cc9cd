"""Which agent is used for what, signed: a statement whose subject is the agent's artifact."""

from agentworld.errors import EvidenceError
from agentworld.records.attestation import Attestation
from agentworld.records.deployment import Deployment
from agentworld.signing.envelope import sign, told_by, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

PREDICATE_TYPE = "urn:agentworld:deployment:v1"
DEPLOYMENTS = "agent-deployments"
"""Where the copies are: a run's name has no dash, so that no checkpoint is there."""


def sign_deployment(made: Deployment, signer: Signer) -> Attestation:
    """A DSSE envelope of an in-toto statement, and the row that tells of it."""
    envelope = sign(_statement(made), signer)
    name = deployment_name(made)
    return Attestation(
        name, "deployment", made.artifact, made.simulator, made.run, made.at, envelope
    )


def read_deployment(kept: Attestation, trusted: TrustedKeys) -> Deployment:
    """What one of the trusted keys signed; raises EvidenceError for anything else.

    Also for a row that says something else than its envelope.
    """
    statement = verify(kept.envelope, trusted)
    made = told_by(statement, Deployment, "deployment", _statement, under="deployment")
    told = (deployment_name(made), made.artifact, made.simulator, made.run, made.at)
    if told != (kept.name, kept.subject, kept.simulator, kept.run, kept.at):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return made


def deployments_under(name: str, alias: str) -> str:
    """Where the copies of an agent's name and an alias are."""
    return f"{DEPLOYMENTS}/{name}/{alias}/"


def deployment_name(made: Deployment) -> str:
    """Of the row and of the copy: there is one of each number."""
    return f"{deployments_under(made.name, made.alias)}{made.number:06d}.dsse.json"


def _statement(made: Deployment) -> Statement:
    return Statement(
        subject=(Subject.of(made.agent, made.artifact),),
        predicate_type=PREDICATE_TYPE,
        predicate={"deployment": made.model_dump(mode="json")},
    )

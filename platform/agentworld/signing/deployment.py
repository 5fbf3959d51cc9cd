"""Which agent is used for what, signed: a statement whose subject is the agent's artifact."""

from agentworld.errors import EvidenceError
from agentworld.records.attestation import Attestation
from agentworld.records.deployment import Deployment
from agentworld.signing.envelope import read_predicate, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

PREDICATE_TYPE = "urn:agentworld:deployment:v1"
DEPLOYMENTS = "agent-deployments"
"""Where the copies are: a run's name has no dash, so that no checkpoint is there."""


def sign_deployment(deployment: Deployment, signer: Signer) -> Attestation:
    """A DSSE envelope of an in-toto statement, and the row that tells of it."""
    envelope = sign(_statement(deployment), signer)
    name = deployment_name(deployment)
    return Attestation(
        name,
        "deployment",
        deployment.artifact,
        deployment.simulator,
        deployment.run,
        deployment.at,
        envelope,
    )


def read_deployment(attestation: Attestation, trusted: TrustedKeys) -> Deployment:
    """What one of the trusted keys signed; raises EvidenceError for anything else.

    Also for a row that says something else than its envelope.
    """
    statement = verify(attestation.envelope, trusted)
    deployment = read_predicate(statement, Deployment, "deployment", _statement, under="deployment")
    columns = (
        deployment_name(deployment),
        deployment.artifact,
        deployment.simulator,
        deployment.run,
        deployment.at,
    )
    if columns != (
        attestation.name,
        attestation.subject,
        attestation.simulator,
        attestation.run,
        attestation.at,
    ):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return deployment


def deployments_under(name: str, alias: str) -> str:
    """Where the copies of an agent's name and an alias are."""
    return f"{DEPLOYMENTS}/{name}/{alias}/"


def deployment_name(deployment: Deployment) -> str:
    """Of the row and of the copy: there is one of each number."""
    return (
        f"{deployments_under(deployment.name, deployment.alias)}{deployment.number:06d}.dsse.json"
    )


def _statement(deployment: Deployment) -> Statement:
    return Statement(
        subject=(Subject.of(deployment.agent, deployment.artifact),),
        predicate_type=PREDICATE_TYPE,
        predicate={"deployment": deployment.model_dump(mode="json")},
    )

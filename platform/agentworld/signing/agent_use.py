"""Which agent is used for what, signed: a statement whose subject is the agent's artifact."""

from agentworld.errors import EvidenceError
from agentworld.records.agent_use import AgentUse
from agentworld.records.attestation import Attestation
from agentworld.signing.envelope import read_predicate, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

PREDICATE_TYPE = "urn:agentworld:agent-use:v1"
AGENT_USES = "agent-uses"
"""Where the copies are: a run's name has no dash, so that no checkpoint is there."""


def sign_agent_use(agent_use: AgentUse, signer: Signer) -> Attestation:
    """A DSSE envelope of an in-toto statement, and the row that tells of it."""
    envelope = sign(_statement(agent_use), signer)
    name = agent_use_name(agent_use)
    return Attestation(
        name,
        "agent-use",
        agent_use.artifact,
        agent_use.simulator,
        agent_use.run,
        agent_use.at,
        envelope,
    )


def read_agent_use(attestation: Attestation, trusted: TrustedKeys) -> AgentUse:
    """What one of the trusted keys signed; raises EvidenceError for anything else.

    Also for a row that says something else than its envelope.
    """
    statement = verify(attestation.envelope, trusted)
    agent_use = read_predicate(
        statement, AgentUse, "use of an agent", _statement, field="agent_use"
    )
    columns = (
        agent_use_name(agent_use),
        agent_use.artifact,
        agent_use.simulator,
        agent_use.run,
        agent_use.at,
    )
    if columns != (
        attestation.name,
        attestation.subject,
        attestation.simulator,
        attestation.run,
        attestation.at,
    ):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return agent_use


def agent_uses_under(name: str, alias: str) -> str:
    """Where the copies of an agent's name and an alias are."""
    return f"{AGENT_USES}/{name}/{alias}/"


def agent_use_name(agent_use: AgentUse) -> str:
    """Of the row and of the copy: there is one of each number."""
    return f"{agent_uses_under(agent_use.name, agent_use.alias)}{agent_use.number:06d}.dsse.json"


def _statement(agent_use: AgentUse) -> Statement:
    return Statement(
        subject=(Subject.of(agent_use.agent, agent_use.artifact),),
        predicate_type=PREDICATE_TYPE,
        predicate={"agent_use": agent_use.model_dump(mode="json")},
    )

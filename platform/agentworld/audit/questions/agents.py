"""A summary of every registered agent: its origin, its live success and its uses."""

from collections.abc import Iterator
from typing import Literal

from agentworld.audit.checks.alias_history import alias_problems
from agentworld.audit.checks.alias_mirror import registry_problems
from agentworld.audit.checks.edges import edge_to
from agentworld.audit.checks.mirror import statement_problems
from agentworld.audit.checks.registry import garbled_in
from agentworld.audit.checks.validation import validation_of, validation_problems
from agentworld.audit.questions.revalidation import AgentsInUse, Revalidation, UseState
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent, Version, VersionRef
from agentworld.records.base import Digest, Record, Sentence
from agentworld.records.garbled import read_each, read_list, readable, reading
from agentworld.records.statements.edge import Grade
from agentworld.records.statements.validation import Validation


class AgentSummary(Record):
    """A registered agent."""

    agent: str
    artifact: Digest
    run: str
    simulator: Digest | None
    """The signed simulator, or else the one that the trainer named."""
    grade: Grade | None
    """The grade of its edge; null if the store has no keys."""
    live_success: float | None
    """The live success rate of its newest validation; null without one."""
    in_use_as: tuple[str, ...]
    state: Literal["current", "revalidate"] | None
    """Whether it is validated in the current targets of its simulator's aliases; null if it is not
    in use.
    """
    revalidate: tuple[Revalidation, ...]
    """The reasons why it is not current."""


class AgentsAudit(Record):
    """The answer to: which agents are registered, and which of them are in use?"""

    agents: tuple[AgentSummary, ...]
    problems: tuple[Sentence, ...]
    """Where uses, validations or aliases differ from their signatures, or the registry differs."""


def audit_agents(sources: Sources) -> AgentsAudit:
    """All registered agents, by name and version."""
    sources = sources.for_many()
    uses = AgentsInUse.read(sources.ledger, sources.evidence, sources.store)
    list_versions = sources.registry.versions
    versions, unlisted = read_list(
        "the registry's list of agents", lambda: list_versions(kind="agent")
    )
    summaries, garbled = read_each(versions, lambda version: _summary(version, uses, sources))
    problems = dict.fromkeys((*unlisted, *problems_in_use(sources), *garbled))
    return AgentsAudit(agents=tuple(summaries), problems=tuple(problems))


def _summary(version: Version, uses: AgentsInUse, sources: Sources) -> AgentSummary:
    """Raises EvidenceError if the registry's record of it is garbled."""
    with reading(str(version.ref)):
        return _summary_of(version.ref, uses, sources)


def _summary_of(ref: VersionRef, uses: AgentsInUse, sources: Sources) -> AgentSummary:
    agent = sources.registry.agent(ref)
    audit = edge_to(ref.name, agent, sources)
    use = uses.of(ref, agent)
    signed = audit.edge.simulator if audit and audit.edge else None
    return AgentSummary(
        agent=str(ref),
        artifact=agent.artifact,
        run=agent.run,
        simulator=signed or agent.checkpoint.simulator,
        grade=audit.grade if audit else None,
        live_success=_live_success(agent, sources),
        in_use_as=use.aliases,
        state=_state(use),
        revalidate=use.revalidate,
    )


def _state(use: UseState) -> Literal["current", "revalidate"] | None:
    if not use.aliases:
        return None
    return "revalidate" if use.revalidate else "current"


def _live_success(agent: Agent, sources: Sources) -> float | None:
    try:
        validation = validation_of(agent, agent.checkpoint.simulator or "", sources)
    except EvidenceError:  # the chain reports it
        return None
    return validation.report.trained.live.mean if validation else None


def problems_in_use(sources: Sources) -> Iterator[str]:
    """Where uses, validations or aliases differ from their signatures, or the registry differs."""
    yield from garbled_in(sources.registry)
    yield from readable("what is in use", registry_problems(sources))
    if sources.evidence is not None:
        attestations, evidence = sources.ledger.attestations, sources.evidence
        problems = statement_problems(Validation, attestations, evidence)
        yield from readable("what steps signed of validations", problems)
        in_store = validation_problems(sources)
        yield from readable("what steps signed of validations", in_store)
        moves = alias_problems(sources.ledger.aliases, attestations, evidence)
        yield from readable("the history of names", moves)

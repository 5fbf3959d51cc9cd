"""Every registered agent at a glance: what made it, what it can do, and what it is in use as."""

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
    """As it was signed; else as the trainer told it."""
    grade: Grade | None
    """Of its edge; null where the store has no keys."""
    live_success: float | None
    """Share of its episodes live, by the newest validation; null without one."""
    in_use_as: tuple[str, ...]
    state: Literal["current", "revalidate"] | None
    """Whether it was validated in what its simulator's names mean; null where it is in no use."""
    revalidate: tuple[Revalidation, ...]
    """Why it is not current."""


class AgentsAudit(Record):
    """The answer to: which agents are there, and which of them are in use?"""

    agents: tuple[AgentSummary, ...]
    problems: tuple[Sentence, ...]
    """Where what is in use, validated or meant by names is not as it was signed, or the registry
    tells otherwise.
    """


def audit_agents(sources: Sources) -> AgentsAudit:
    """All that are registered, by name and version."""
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
    """Raises EvidenceError where the registry's record of it is garbled."""
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
    except EvidenceError:  # which its chain says
        return None
    return validation.report.trained.live.mean if validation else None


def problems_in_use(sources: Sources) -> Iterator[str]:
    """Where what is in use, validated and meant by names is not as it was signed, or the registry
    tells otherwise.
    """
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

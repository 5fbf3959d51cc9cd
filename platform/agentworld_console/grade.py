"""The grade of a simulator's edge to an agent, by everything that a page knows."""

from agentworld.audit.checks.edges import EdgeAudit
from agentworld.audit.questions.agent import AgentChain


def grade_of(chain: AgentChain) -> EdgeAudit:
    """The signed grade, lowered if the record was checked again and is broken."""
    edge = chain.edge or to_disputed(f"nothing of run {chain.run.id} is signed")
    problems = chain.evidence.problems if chain.evidence else ()
    return edge.disputed(*problems) if problems else edge


def to_disputed(problem: str) -> EdgeAudit:
    """The grade of an agent without an edge."""
    return EdgeAudit(subject="the edge", grade="disputed", problems=(problem,))

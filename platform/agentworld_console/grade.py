"""How far it is proven that a simulator trained an agent, by all that a page knows."""

from agentworld.audit.checks.edges import EdgeAudit
from agentworld.audit.questions.agent import AgentChain


def grade_of(chain: AgentChain) -> EdgeAudit:
    """As it was signed; no better than a record that was read again, and is broken."""
    edge = chain.edge or to_disputed(f"nothing of run {chain.run.id} is signed")
    problems = chain.evidence.problems if chain.evidence else ()
    return edge.disputed(*problems) if problems else edge


def to_disputed(problem: str) -> EdgeAudit:
    """Of an agent that no edge is known of."""
    return EdgeAudit(subject="the edge", grade="disputed", problems=(problem,))

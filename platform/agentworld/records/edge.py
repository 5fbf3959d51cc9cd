"""Which simulator served the run that made an agent: what was seen, and how far it is proven."""

from typing import Literal

from pydantic import Field

from agentworld.records.agent_use import AgentName
from agentworld.records.base import Digest, Record

Grade = Literal["proven", "observed", "disputed"]
"""How far an edge can be relied on:

    proven    the run's record and the weights that it made are both signed by the platform
    observed  the run's record is; which weights it made is a trainer's word
    disputed  evidence is missing, or contradicts; the reasons say which
"""

GRADE_MEANINGS: dict[Grade, str] = {
    "proven": "the run's record and the weights that it made are both signed",
    "observed": "the run's record is signed; the weights are the trainer's claim",
    "disputed": "evidence is missing or contradicts itself",
}
"""For people who read a grade."""


class Traffic(Record):
    """What a run's log tells of all that was answered in it."""

    num_episodes: int = Field(0, ge=0)
    num_steps: int = Field(0, ge=0)
    """That the simulator answered in it."""
    num_copied: int = Field(0, ge=0, exclude_if=lambda num: num == 0)
    """Steps that came with forks: answered in another run, or earlier in this one."""
    controls: dict[Digest, int] = {}
    """Episodes by the instruction that steered their world (Qwen-AgentWorld 3.5); the first
    hundred different ones."""
    other_controls: int = Field(0, ge=0)
    """Episodes under any others."""
    first_at: str = ""
    last_at: str = ""
    """Of the log's entries."""


class Claim(Record):
    """What whoever registers an agent says of it."""

    agent: AgentName
    """The name that it is registered by."""
    artifact: Digest
    starting_weights: Digest
    simulator: Digest
    world_model: Digest | None = None
    """The weights that the simulator serves; null for somebody's endpoint."""
    data: tuple[Digest, ...] = Field((), max_length=64)
    """What these were trained on."""


class Edge(Record):
    """This simulator served the run that made this agent."""

    claim: Claim
    run: str
    tenant: str
    simulator: Digest
    """As the ledger that answered the steps has it."""
    traffic: Traffic
    log_length: int
    root: Digest | None
    """Of the Merkle tree over so many entries of the run's log, as it was signed."""
    grade: Grade
    reasons: tuple[str, ...] = ()
    """Why it is disputed."""
    at: str


class SignedEdge(Record):
    """An edge, and the envelope in which it was signed."""

    edge: Edge
    envelope: str

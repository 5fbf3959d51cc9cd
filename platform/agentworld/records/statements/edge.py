"""Which simulator served the run that made an agent: what was seen, and how far it is proven.

It is checked against the registry's agent, and against the signature that its run was closed with.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from agentworld.records.base import Digest, Record, digest_bytes
from agentworld.records.statements.alias import AgentName
from agentworld.records.statements.base import Column, LedgerColumns, SignedRecord

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


class Edge(SignedRecord):
    """This simulator served the run that made this agent."""

    kind: ClassVar[str] = "edge"
    predicate_type: ClassVar[str] = "urn:agentworld:edge:v1"
    field: ClassVar[str] = "edge"
    folder: ClassVar[str] = "agent-edges"
    column: ClassVar[Column] = "run"

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

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:  # noqa: ARG003
        """By its name, in which its run is."""
        return f"the edge {name}"

    def path_of(self, envelope: bytes) -> str:
        """By its envelope's digest, which the registry keeps of it too."""
        return edge_name(self.run, envelope)

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.claim.artifact, self.simulator, self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.claim.artifact

    @property
    def subject_name(self) -> str:
        return self.claim.agent

    @property
    def predicate(self) -> dict[str, JsonValue]:
        return super().predicate | {"materials": [*self._materials()]}

    def _materials(self) -> Iterator[JsonValue]:
        """What the agent was made of, as in-toto names it."""
        claim = self.claim
        yield _material("simulator", self.simulator)
        yield _material("starting-weights", claim.starting_weights)
        if claim.world_model:
            yield _material("world-model", claim.world_model)
        for data in claim.data:
            yield _material("data", data)


class SignedEdge(Record):
    """An edge, and the envelope in which it was signed."""

    edge: Edge
    envelope: str


def edge_name(run: str, envelope: bytes) -> str:
    """Where the copy of an edge is."""
    return f"{Edge.folder_of(run)}/{digest_bytes(envelope).removeprefix('sha256:')}.dsse.json"


def _material(name: str, digest: Digest) -> JsonValue:
    algorithm, value = digest.split(":")
    return {"name": name, "digest": {algorithm: value}}


KIND = Edge

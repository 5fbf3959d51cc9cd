"""Which simulator served the run of an agent, with the evidence and its grade.

It is checked against the registry's agent, and against the signature of its run's closing.
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
"""Explanations of the grades."""


class Traffic(Record):
    """Sums over a run's log."""

    num_episodes: int = Field(0, ge=0)
    num_steps: int = Field(0, ge=0)
    """The steps that the simulator answered in it."""
    num_copied: int = Field(0, ge=0, exclude_if=lambda num: num == 0)
    """Steps that forks copied: answered in another run, or earlier in this one."""
    controls: dict[Digest, int] = {}
    """Episodes by the instruction that controlled their world (Qwen-AgentWorld 3.5); the first
    hundred different ones.
    """
    other_controls: int = Field(0, ge=0)
    """Episodes with any other instruction."""
    first_at: str = ""
    last_at: str = ""
    """The time of the log's last entry."""


class Claim(Record):
    """The claims of the caller who registers an agent."""

    agent: AgentName
    """The name that it is registered under."""
    artifact: Digest
    starting_weights: Digest
    simulator: Digest
    world_model: Digest | None = None
    """The weights that the simulator serves; null for an endpoint."""
    data: tuple[Digest, ...] = Field((), max_length=64)
    """The data sets that these were trained on."""


class Edge(SignedRecord):
    """This simulator served the run that produced this agent."""

    kind: ClassVar[str] = "edge"
    predicate_type: ClassVar[str] = "urn:agentworld:edge:v1"
    field: ClassVar[str] = "edge"
    folder: ClassVar[str] = "agent-edges"
    column: ClassVar[Column] = "run"

    claim: Claim
    run: str
    tenant: str
    simulator: Digest
    """The simulator in the ledger that answered the steps."""
    traffic: Traffic
    log_length: int
    root: Digest | None
    """The signed Merkle root of the first entries of the run's log."""
    grade: Grade
    reasons: tuple[str, ...] = ()
    """The reasons why it is disputed."""
    at: str

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:  # noqa: ARG003
        """Describes it by its name, which contains its run."""
        return f"the edge {name}"

    def path_of(self, envelope: bytes) -> str:
        """Named by its envelope's digest, which the registry also stores."""
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
        """The origin of the agent, in in-toto's form."""
        claim = self.claim
        yield _material("simulator", self.simulator)
        yield _material("starting-weights", claim.starting_weights)
        if claim.world_model:
            yield _material("world-model", claim.world_model)
        for data in claim.data:
            yield _material("data", data)


class SignedEdge(Record):
    """An edge with its envelope."""

    edge: Edge
    envelope: str


def edge_name(run: str, envelope: bytes) -> str:
    """The name of an edge's copy."""
    return f"{Edge.folder_of(run)}/{digest_bytes(envelope).removeprefix('sha256:')}.dsse.json"


def _material(name: str, digest: Digest) -> JsonValue:
    algorithm, value = digest.split(":")
    return {"name": name, "digest": {algorithm: value}}


KIND = Edge

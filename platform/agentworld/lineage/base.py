"""The registry's protocol: versions by name, each bound to an artifact and its origin.

A name and a number are labels for people. Other records hold digests.
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.lineage.data_input import DataInput
from agentworld.records.base import Digest, Record, digest_bytes, first_problem
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.dataset import DataSet
from agentworld.records.statements.edge import SignedEdge
from agentworld.records.statements.registration import Links

_Kind = TypeVar("_Kind", bound=Record)
_NAME = r"[A-Za-z0-9_-]+"

WHOLE = "whole"
"""The state of a version, or of its model, whose registration is complete."""

AGENT_TAGS = {"artifact", "run", "simulator"}
"""The tags of each agent; an audit names the agents whose tags were removed."""


class VersionRef(Record):
    """A registered version, written `name@version`."""

    name: Annotated[str, StringConstraints(pattern=f"^{_NAME}$")]
    version: int = Field(ge=1, lt=10**9)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`; raises InputError."""
        parts = re.fullmatch(rf"({_NAME})@(\d{{1,9}})", text)
        if parts is None:
            raise InputError(f"{text!r} is not NAME@VERSION; write it like shell-agent@1")
        return cls(name=parts[1], version=int(parts[2]))


class WorldModel(Record):
    """A world model to register: its stages in order; the last one is served."""

    stages: tuple[Checkpoint, ...] = Field(min_length=1)
    report: Digest
    """The evaluation of all stages."""
    metrics: dict[str, float] = {}

    @property
    def artifact(self) -> Digest:
        """The digest that a name and a version identify."""
        return self.stages[-1].artifact

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that it was trained on."""
        return self.stages[-1].domains


class Agent(Record):
    """An agent to register: its weights, its run and its validation."""

    checkpoint: Checkpoint
    run: str
    report: Digest | None = None
    """The digest of the live validation; null without one."""
    edge: SignedEdge | None = None
    """The signed edge to its simulator; null without signing keys."""

    @property
    def artifact(self) -> Digest:
        """The digest that a name and a version identify."""
        return self.checkpoint.artifact

    @property
    def stages(self) -> tuple[Checkpoint, ...]:
        """The trainings that produced it, in order."""
        return (self.checkpoint,)

    @property
    def edge_digest(self) -> Digest | None:
        """The digest of the envelope of its edge."""
        return digest_bytes(self.edge.envelope.encode()) if self.edge else None


class Version(Record):
    """A registry's summary of a version; reads none of its files."""

    ref: VersionRef
    at: datetime
    """When it was registered."""
    tags: dict[str, str]
    """Our tags, without the prefix `agentworld.`."""


class RegisteredAgent(Record):
    """A registered agent from its tags; its record has the other fields."""

    ref: VersionRef
    artifact: Digest
    run: str
    edge_digest: Digest | None

    @classmethod
    def of(cls, ref: VersionRef, agent: Agent) -> Self:
        """Builds it from the record."""
        return cls(ref=ref, artifact=agent.artifact, run=agent.run, edge_digest=agent.edge_digest)

    @classmethod
    def from_tags(cls, version: Version) -> Self | None:
        """Builds it from the tags; null if they are garbled."""
        artifact, run, edge = (version.tags.get(name) for name in ("artifact", "run", "edge"))
        fields = {"ref": version.ref, "artifact": artifact, "run": run, "edge_digest": edge}
        try:
            return cls.model_validate(fields)
        except ValidationError:
            return None


class StoredVersion(Record):
    """A registry's unchecked data of a version."""

    version: Version
    record: str | None
    """The JSON of the registered entity; null if it is missing."""
    signature: str | None
    """A DSSE envelope over the record; null if there is none."""
    run: Literal["present", "deleted", "missing"]
    """The state of the run that registered it."""
    status: str = WHOLE
    """The state of the version: whole, or the registry's own word."""
    model: str
    """The state of its model: whole, missing, or the registry's own word."""
    links: Links = Links()
    """The versions that it was made of."""
    data: tuple[DataInput, ...] = ()
    """The inputs that its run names."""
    locations: tuple[str, ...] = ()
    """The locations of its files: by its name, and by its model."""


class Registry(Protocol):
    """Raises InputError for a missing version, StoreError if the registry does not respond."""

    def register_world_model(
        self, name: str, entity: WorldModel, model: Path, *, signature: str | None = None
    ) -> VersionRef:
        """A new version, or the existing one of this artifact.

        `signature` is a DSSE envelope over the record, and is stored with it.
        """
        ...

    def register_agent(
        self,
        name: str,
        entity: Agent,
        model: Path,
        *,
        signature: str | None = None,
        world_model: VersionRef | None = None,
    ) -> VersionRef:
        """A new version, or the existing one of this artifact of this run.

        `world_model` is the version that its simulator serves, if that is registered.
        """
        ...

    def register_dataset(self, dataset: DataSet) -> str:
        """Shows a data set in the registry; a repetition changes nothing."""
        ...

    def world_model(self, ref: VersionRef) -> WorldModel:
        """The world model registered under a name and a version."""
        ...

    def agent(self, ref: VersionRef) -> Agent:
        """The agent registered under a name and a version."""
        ...

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions with an artifact."""
        ...

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run produced."""
        ...

    def versions(self, **tags: str) -> list[Version]:
        """All versions with these values of tags, ordered by name and version."""
        ...

    def garbled(self) -> list[str]:
        """A sentence for each invalid version and alias with our tags."""
        ...

    def version(self, ref: VersionRef) -> Version:
        """One version."""
        ...

    def stored(self, ref: VersionRef) -> StoredVersion:
        """All data of a version except its files."""
        ...

    def agents(self, limit: int) -> list[Version]:
        """At most `limit` registered agents with all AGENT_TAGS, the newest first."""
        ...

    def mark(self, ref: VersionRef, tag: str, value: str | None) -> None:
        """Sets or removes a tag of a version."""
        ...

    def set_alias(self, ref: VersionRef, alias: str) -> None:
        """Points the alias of this name at this version."""
        ...

    def remove_alias(self, name: str, alias: str) -> None:
        """Removes an alias of a name, if it exists."""
        ...

    def aliases(self) -> dict[tuple[str, str], int]:
        """The versions of all names and aliases, including other users'."""
        ...

    def fetch(self, ref: VersionRef, target: Path) -> None:
        """Copies the files of a version into a folder."""
        ...


def absent(ref: VersionRef, versions: list[int], names: list[str]) -> NotFound:
    """The error for a missing version."""
    if versions:
        choices = ", ".join(str(version) for version in sorted(versions))
        return NotFound(f"there is no version {ref.version} of {ref.name}; versions are {choices}")
    choices = ", ".join(sorted(names)) or "none yet; run `agentworld demo`"
    return NotFound(f"nothing is registered as {ref.name!r}; registered are {choices}")


def parse_record(kind: type[_Kind], ref: VersionRef, record: str) -> _Kind:
    """Parses a registry's record; raises EvidenceError if it is garbled."""
    try:
        return kind.model_validate_json(record)
    except ValidationError as error:
        raise EvidenceError(
            f"the registry's record of {ref} is garbled ({first_problem(error)}); restore it"
        ) from error

"""What a registry is: versions by name, each bound to an artifact and to where it came from.

A name and a number are labels for people. What is stored elsewhere holds digests.
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
"""The state of a version, or of its model, that was registered to the end."""


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
            raise InputError(f"{text!r} is no NAME@VERSION; write it like shell-agent@1")
        return cls(name=parts[1], version=int(parts[2]))


class WorldModel(Record):
    """A world model to be registered: its stages, from the first to the one that is served."""

    stages: tuple[Checkpoint, ...] = Field(min_length=1)
    report: Digest
    """The evaluation of all stages."""
    metrics: dict[str, float] = {}

    @property
    def artifact(self) -> Digest:
        """What a name and a version stand for."""
        return self.stages[-1].artifact

    @property
    def domains(self) -> tuple[str, ...]:
        """The kinds of world that it was trained on."""
        return self.stages[-1].domains


class Agent(Record):
    """An agent to be registered: its weights, the run that made them, and how it was validated."""

    checkpoint: Checkpoint
    run: str
    report: Digest | None = None
    """The live validation; null for one that was registered without."""
    edge: SignedEdge | None = None
    """What its simulator signed of it; null where nothing is signed."""

    @property
    def artifact(self) -> Digest:
        """What a name and a version stand for."""
        return self.checkpoint.artifact

    @property
    def stages(self) -> tuple[Checkpoint, ...]:
        """The trainings that made it, in their order."""
        return (self.checkpoint,)

    @property
    def edge_digest(self) -> Digest | None:
        """Of the envelope in which its edge was signed."""
        return digest_bytes(self.edge.envelope.encode()) if self.edge else None


class Version(Record):
    """What a registry tells of a version at a glance: no file of it is read."""

    ref: VersionRef
    at: datetime
    """When it was registered."""
    tags: dict[str, str]
    """Those of ours, without the `agentworld.` before them."""


class RegisteredAgent(Record):
    """A registered agent as its tags tell it; its record says the rest."""

    ref: VersionRef
    artifact: Digest
    run: str
    edge_digest: Digest | None

    @classmethod
    def of(cls, ref: VersionRef, agent: Agent) -> Self:
        """As its record tells it."""
        return cls(ref=ref, artifact=agent.artifact, run=agent.run, edge_digest=agent.edge_digest)

    @classmethod
    def from_tags(cls, version: Version) -> Self | None:
        """As its tags tell it; null where somebody garbled them."""
        artifact, run, edge = (version.tags.get(name) for name in ("artifact", "run", "edge"))
        fields = {"ref": version.ref, "artifact": artifact, "run": run, "edge_digest": edge}
        try:
            return cls.model_validate(fields)
        except ValidationError:
            return None


class StoredVersion(Record):
    """What a registry keeps of a version, as it is now; nothing is checked yet."""

    version: Version
    record: str | None
    """The JSON of what was registered; null where it is gone."""
    signature: str | None
    """A DSSE envelope over that; null where none is there."""
    run: Literal["present", "deleted", "missing"]
    """That it was registered by."""
    status: str = WHOLE
    """Of the version itself: whole, or the registry's own word."""
    model: str
    """Of the model that it was made of: whole, missing, or the registry's own word."""
    links: Links = Links()
    """What it is made of."""
    data: tuple[DataInput, ...] = ()
    """What its run names as read."""
    locations: tuple[str, ...] = ()
    """Where its files are: by its name, and by its model."""


class Registry(Protocol):
    """Raises InputError for a version that is not there, StoreError where it cannot answer."""

    def register_world_model(
        self, name: str, entity: WorldModel, model: Path, *, signature: str | None = None
    ) -> VersionRef:
        """A new version, or the one that this artifact has already.

        `signature` is a DSSE envelope over what is registered, and is kept beside it.
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
        """A new version, or the one that this artifact of this run has already.

        `world_model` is what its simulator serves, where that is registered.
        """
        ...

    def register_dataset(self, dataset: DataSet) -> str:
        """What names a data set to who looks at the registry, made now or before."""
        ...

    def world_model(self, ref: VersionRef) -> WorldModel:
        """What was registered under a name and a version."""
        ...

    def agent(self, ref: VersionRef) -> Agent:
        """What was registered under a name and a version."""
        ...

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions that stand for an artifact."""
        ...

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run made."""
        ...

    def versions(self, **tags: str) -> list[Version]:
        """All versions with these values of tags, in the order of names and versions."""
        ...

    def garbled(self) -> list[str]:
        """A sentence for each version and alias that can be none of ours, though it says so."""
        ...

    def version(self, ref: VersionRef) -> Version:
        """One version."""
        ...

    def stored(self, ref: VersionRef) -> StoredVersion:
        """All that is kept of a version, but for its files."""
        ...

    def agents(self, limit: int) -> list[Version]:
        """So many registered agents at most, the newest first."""
        ...

    def mark(self, ref: VersionRef, tag: str, value: str | None) -> None:
        """Sets a tag of a version, or takes it away; nothing else of it changes."""
        ...

    def set_alias(self, ref: VersionRef, alias: str) -> None:
        """From now on the alias of this name is this version."""
        ...

    def remove_alias(self, name: str, alias: str) -> None:
        """Takes an alias of a name away; what is not there stays so."""
        ...

    def aliases(self) -> dict[tuple[str, str], int]:
        """The versions that names and their aliases stand for; also of what others registered."""
        ...

    def fetch(self, ref: VersionRef, target: Path) -> None:
        """Copies the files of a version into a folder."""
        ...


def absent(ref: VersionRef, versions: list[int], names: list[str]) -> NotFound:
    """The sentence for a version that is not there."""
    if versions:
        choices = ", ".join(str(version) for version in sorted(versions))
        return NotFound(f"there is no version {ref.version} of {ref.name}; versions are {choices}")
    choices = ", ".join(sorted(names)) or "none yet; run `agentworld demo`"
    return NotFound(f"nothing is registered as {ref.name!r}; registered are {choices}")


def parse_record(kind: type[_Kind], ref: VersionRef, record: str) -> _Kind:
    """What was registered, as a registry kept it; raises EvidenceError for what is garbled."""
    try:
        return kind.model_validate_json(record)
    except ValidationError as error:
        raise EvidenceError(
            f"the registry's record of {ref} is garbled ({first_problem(error)}); restore it"
        ) from error

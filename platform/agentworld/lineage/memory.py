"""A registry in memory, with the behaviour of a Registry except durability."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.lineage.base import (
    AGENT_TAGS,
    WHOLE,
    Agent,
    StoredVersion,
    Version,
    VersionRef,
    WorldModel,
    absent,
)
from agentworld.lineage.data_input import data_inputs
from agentworld.lineage.tags import tags_of
from agentworld.records.base import Digest
from agentworld.records.dataset import DataSet
from agentworld.records.statements.registration import Links


class _Entry(NamedTuple):
    version: Version
    entity: WorldModel | Agent
    model: Path
    signature: str | None
    inputs: tuple[str, ...] = ()

    @property
    def ref(self) -> VersionRef:
        return self.version.ref


class MemoryRegistry:
    """Models stay where they are; `fetch` copies them."""

    def __init__(self) -> None:
        self.datasets: dict[Digest, DataSet] = {}
        self._entries: list[_Entry] = []
        self._aliases: dict[tuple[str, str], int] = {}

    def register_world_model(
        self, name: str, entity: WorldModel, model: Path, *, signature: str | None = None
    ) -> VersionRef:
        """A new version, or the existing one of this artifact."""
        refs = [e.ref for e in self._entries_of(name) if e.entity.artifact == entity.artifact]
        return refs[0] if refs else self._add(name, entity, model, signature)

    def register_agent(
        self,
        name: str,
        entity: Agent,
        model: Path,
        *,
        signature: str | None = None,
        world_model: VersionRef | None = None,
    ) -> VersionRef:
        """A new version, or the existing one of this artifact of this run."""
        refs = [
            entry.ref
            for entry in self._entries_of(name)
            if isinstance(entry.entity, Agent)
            and (entry.entity.artifact, entry.entity.run) == (entity.artifact, entity.run)
            and entity.edge_digest in (None, entry.entity.edge_digest)
        ]
        inputs = (f"model of {world_model}",) if world_model else ()
        return refs[0] if refs else self._add(name, entity, model, signature, inputs)

    def register_dataset(self, dataset: DataSet) -> str:
        """Its digest names it."""
        self.datasets[dataset.digest] = dataset
        return dataset.digest

    def world_model(self, ref: VersionRef) -> WorldModel:
        """The world model registered under a name and a version."""
        entity = self._entry(ref).entity
        if not isinstance(entity, WorldModel):
            raise InputError(f"{ref} is not a world model; name a version of one")
        return entity

    def agent(self, ref: VersionRef) -> Agent:
        """The agent registered under a name and a version."""
        entity = self._entry(ref).entity
        if not isinstance(entity, Agent):
            raise InputError(f"{ref} is not an agent; name a version of one")
        return entity

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions with an artifact."""
        return [
            entry.ref
            for entry in self._entries
            if isinstance(entry.entity, WorldModel) and entry.entity.artifact == artifact
        ]

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run produced."""
        return [
            entry.ref
            for entry in self._entries
            if isinstance(entry.entity, Agent) and entry.entity.run == run
        ]

    def versions(self, **tags: str) -> list[Version]:
        """All versions with these values of tags, ordered by name and version."""
        versions = (e.version for e in self._entries if tags.items() <= e.version.tags.items())
        return sorted(versions, key=lambda version: (version.ref.name, version.ref.version))

    def garbled(self) -> list[str]:
        """Empty: no other program writes here."""
        return []

    def version(self, ref: VersionRef) -> Version:
        """One version."""
        return self._entry(ref).version

    def stored(self, ref: VersionRef) -> StoredVersion:
        """All data of a version except its files."""
        entry = self._entry(ref)
        return StoredVersion(
            version=entry.version,
            record=entry.entity.model_dump_json(),
            signature=entry.signature,
            run="present",
            model=WHOLE,
            links=Links(run=f"run of {ref}", model=f"model of {ref}", inputs=entry.inputs),
            data=data_inputs(entry.entity.stages),
        )

    def agents(self, limit: int) -> list[Version]:
        """At most `limit` registered agents with all AGENT_TAGS, the newest first."""
        agents = [e.version for e in reversed(self._entries) if isinstance(e.entity, Agent)]
        return [version for version in agents if version.tags.keys() >= AGENT_TAGS][:limit]

    def mark(self, ref: VersionRef, tag: str, value: str | None) -> None:
        """Sets or removes a tag of a version."""
        tags = self._entry(ref).version.tags
        tags.pop(tag, None)
        tags.update({} if value is None else {tag: value})

    def set_alias(self, ref: VersionRef, alias: str) -> None:
        """Points the alias of this name at this version."""
        self._aliases[ref.name, alias] = self._entry(ref).ref.version

    def remove_alias(self, name: str, alias: str) -> None:
        """Removes an alias of a name, if it exists."""
        self._aliases.pop((name, alias), None)

    def aliases(self) -> dict[tuple[str, str], int]:
        """The versions of all names and aliases."""
        return dict(self._aliases)

    def fetch(self, ref: VersionRef, target: Path) -> None:
        """Copies the files of a version into a folder."""
        shutil.copytree(self._entry(ref).model, target, dirs_exist_ok=True)

    def _entries_of(self, name: str) -> list[_Entry]:
        return [entry for entry in self._entries if entry.ref.name == name]

    def _add(
        self,
        name: str,
        entity: WorldModel | Agent,
        model: Path,
        signature: str | None,
        inputs: tuple[str, ...] = (),
    ) -> VersionRef:
        ref = VersionRef(name=name, version=len(self._entries_of(name)) + 1)
        version = Version(ref=ref, at=datetime.now(UTC), tags=tags_of(entity))
        self._entries.append(_Entry(version, entity, model, signature, inputs))
        return ref

    def _entry(self, ref: VersionRef) -> _Entry:
        for entry in self._entries:
            if entry.ref == ref:
                return entry
        names = [entry.ref.name for entry in self._entries]
        raise absent(ref, [entry.ref.version for entry in self._entries_of(ref.name)], names)

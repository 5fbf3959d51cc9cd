"""A registry in memory: keeps every promise of the seam but that it outlives the process."""

import shutil
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.lineage.base import Agent, VersionRef, WorldModel, absent
from agentworld.records.base import Digest


class _Entry(NamedTuple):
    ref: VersionRef
    what: WorldModel | Agent
    model: Path


class MemoryRegistry:
    """Models stay where they are; `fetch` copies them."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def register_world_model(self, name: str, what: WorldModel, model: Path) -> VersionRef:
        """A new version, or the one that this artifact has already."""
        known = [e.ref for e in self._named(name) if e.what.artifact == what.artifact]
        return known[0] if known else self._add(name, what, model)

    def register_agent(self, name: str, what: Agent, model: Path) -> VersionRef:
        """A new version, or the one that this artifact of this run has already."""
        known = [
            entry.ref
            for entry in self._named(name)
            if isinstance(entry.what, Agent)
            and (entry.what.artifact, entry.what.run) == (what.artifact, what.run)
        ]
        return known[0] if known else self._add(name, what, model)

    def world_model(self, ref: VersionRef) -> WorldModel:
        """What was registered under a name and a version."""
        what = self._entry(ref).what
        if not isinstance(what, WorldModel):
            raise InputError(f"{ref} is no world model; name a version of one")
        return what

    def agent(self, ref: VersionRef) -> Agent:
        """What was registered under a name and a version."""
        what = self._entry(ref).what
        if not isinstance(what, Agent):
            raise InputError(f"{ref} is no agent; name a version of one")
        return what

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions that stand for an artifact."""
        return [
            entry.ref
            for entry in self._entries
            if isinstance(entry.what, WorldModel) and entry.what.artifact == artifact
        ]

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run made."""
        return [
            entry.ref
            for entry in self._entries
            if isinstance(entry.what, Agent) and entry.what.run == run
        ]

    def fetch(self, ref: VersionRef, out: Path) -> None:
        """Copies the files of a version into a folder."""
        shutil.copytree(self._entry(ref).model, out, dirs_exist_ok=True)

    def _named(self, name: str) -> list[_Entry]:
        return [entry for entry in self._entries if entry.ref.name == name]

    def _add(self, name: str, what: WorldModel | Agent, model: Path) -> VersionRef:
        ref = VersionRef(name=name, version=len(self._named(name)) + 1)
        self._entries.append(_Entry(ref, what, model))
        return ref

    def _entry(self, ref: VersionRef) -> _Entry:
        for entry in self._entries:
            if entry.ref == ref:
                return entry
        names = [entry.ref.name for entry in self._entries]
        raise absent(ref, [entry.ref.version for entry in self._named(ref.name)], names)

"""Unreadable versions in a registry that other programs wrote with our tags."""

from pathlib import Path

from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent, StoredVersion, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry


class RegistryWithStrays(MemoryRegistry):
    """`a-stray`, which sorts before our versions, has no record."""

    def stray(self, entity: WorldModel | Agent) -> VersionRef:
        if isinstance(entity, Agent):
            return self.register_agent("a-stray", entity, Path())
        return self.register_world_model("a-stray", entity, Path())

    def world_models_of(self, artifact: str) -> list[VersionRef]:
        """In the order of names, as in MLflow."""
        return sorted(super().world_models_of(artifact), key=str)

    def world_model(self, ref: VersionRef) -> WorldModel:
        self._check(ref)
        return super().world_model(ref)

    def agent(self, ref: VersionRef) -> Agent:
        self._check(ref)
        return super().agent(ref)

    def stored(self, ref: VersionRef) -> StoredVersion:
        self._check(ref)
        return super().stored(ref)

    def _check(self, ref: VersionRef) -> None:
        if ref.name == "a-stray":
            raise EvidenceError(f"{ref} is garbled")

"""What a step that registers says beside the record: whose word it is, and what it led from."""

from pathlib import Path

from agentworld.audit.registration import registration_of
from agentworld.audit.sources import manifest_of, world_models_of
from agentworld.evidence.registration import sign_registration
from agentworld.lineage.base import Agent, Registry, VersionRef, WorldModel
from agentworld.records.base import Digest
from agentworld.steps.keys import registering_signer


def signed(name: str, what: WorldModel | Agent, store: Path) -> str | None:
    """The signed statement that this is registered; null where no key can be had."""
    signer = registering_signer(store)
    return sign_registration(registration_of(name, what), signer) if signer else None


def world_model_of(simulator: Digest, store: Path, registry: Registry) -> VersionRef | None:
    """The version that a simulator of this store serves, where that is registered."""
    return next(iter(world_models_of(manifest_of(simulator, store), registry)), None)

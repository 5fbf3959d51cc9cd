"""Registers versions: signs the record beside the version, and a statement for the ledger."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agentworld.audit.checks.registration import read_record, registration_of, verify_registration
from agentworld.audit.read.sources import manifest_of, world_models_of
from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent, Registry, StoredVersion, VersionRef, WorldModel
from agentworld.operations.ledger import registering_signer, trusted_steps
from agentworld.operations.registry import find_world_model
from agentworld.operations.statements import sign
from agentworld.records.base import now
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.signing.registration import sign_registration
from agentworld.storage.datasets import prepared_dataset


def register(
    name: str, record: WorldModel | Agent, model: Path, registry: Registry, store: Path, out: Path
) -> VersionRef:
    """Registers a version; it is unsigned if there is no key. The statement is written to `out`."""
    signer = registering_signer(store)
    signature = sign_registration(registration_of(name, record), signer) if signer else None
    if isinstance(record, WorldModel):
        ref = registry.register_world_model(name, record, model, signature=signature)
    else:
        world_model = _world_model_of(record, registry, store)
        ref = registry.register_agent(
            name, record, model, signature=signature, world_model=world_model
        )
    if registration := _to_registered(registry.stored(ref), store):
        sign(registration, store, out)
    return ref


def register_data(stages: Iterable[Checkpoint], registry: Registry, store: Path) -> None:
    """Registers the data sets that trainings read, if this store prepared them."""
    for data in dict.fromkeys(stage.data for stage in stages if stage.data):
        with suppress(EvidenceError):  # `audit verify` reports it
            if stored := prepared_dataset(data, store):
                registry.register_dataset(stored.dataset)


def _world_model_of(agent: Agent, registry: Registry, store: Path) -> VersionRef | None:
    """The version that its simulator serves, if it is in this store and registered."""
    simulator = agent.edge.edge.simulator if agent.edge else agent.checkpoint.simulator
    manifest = manifest_of(simulator, store) if simulator else None
    ref, _ = find_world_model(world_models_of(manifest, registry), registry, trusted_steps(store))
    return ref


def _to_registered(stored: StoredVersion, store: Path) -> RegisteredVersion | None:
    """Null for a version that existed before and that no step signed: this step did not make it."""
    ref, record = stored.version.ref, stored.record or ""
    try:
        registration = verify_registration(stored, trusted_steps(store))
    except EvidenceError:  # the audit reports it
        return None
    origin = read_record(record)
    return RegisteredVersion(
        registered_as=ref.name,
        version=ref.version,
        artifact=registration.artifact,
        run=origin.run if isinstance(origin, Agent) else "",
        record=registration.record,
        links=stored.links,
        at=now(),
    )

"""Compares a registration with its signed statement."""

import json
from collections.abc import Iterator

from pydantic import TypeAdapter, ValidationError

from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent, StoredVersion, WorldModel
from agentworld.records.base import Digest, digest_json, first_problem
from agentworld.signing.envelope import Subject
from agentworld.signing.keys import TrustedKeys
from agentworld.signing.registration import Registration, check_registration

_Registered = TypeAdapter[WorldModel | Agent](WorldModel | Agent)


def registration_of(name: str, entity: WorldModel | Agent) -> Registration:
    """The statement that an entity is registered under a name."""
    return _registration(name, entity, entity.digest)


def registration_in(name: str, record: str) -> Registration:
    """The statement of a registry's record; raises EvidenceError if the record is invalid."""
    return _registration(name, read_record(record), digest_json(json.loads(record)))


def verify_registration(stored: StoredVersion, trusted: TrustedKeys) -> Registration:
    """The step's signed registration of a version; raises EvidenceError if no trusted key signed
    exactly the registry's record.
    """
    registration = registration_in(stored.version.ref.name, stored.record or "")
    check_registration(registration, stored.signature or "", trusted)
    return registration


def read_record(record: str) -> WorldModel | Agent:
    """The registered entity; raises EvidenceError if it cannot be read."""
    try:
        return _Registered.validate_json(record)
    except ValidationError as error:
        raise EvidenceError(
            f"its record cannot be read ({first_problem(error)}); restore it"
        ) from error


def _registration(name: str, entity: WorldModel | Agent, record: Digest) -> Registration:
    return Registration(
        name=name,
        kind="world-model" if isinstance(entity, WorldModel) else "agent",
        artifact=entity.artifact,
        record=record,
        materials=tuple(Subject.of(*material) for material in _materials(entity)),
    )


def _materials(entity: WorldModel | Agent) -> Iterator[tuple[str, Digest]]:
    for checkpoint in entity.stages:
        for parent in checkpoint.parents:
            yield f"{checkpoint.stage}.parent", parent
        yield f"{checkpoint.stage}.recipe", digest_json(checkpoint.recipe)
        if checkpoint.data:
            yield f"{checkpoint.stage}.data", checkpoint.data
        for name, corpus in checkpoint.corpora.items():
            yield f"{checkpoint.stage}.corpus.{name}", corpus.content
        if checkpoint.simulator:
            yield f"{checkpoint.stage}.simulator", checkpoint.simulator
        if checkpoint.reward_model:
            yield f"{checkpoint.stage}.reward_model", checkpoint.reward_model
    if entity.report:
        yield "report", entity.report

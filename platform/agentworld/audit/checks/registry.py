"""Checks that MLflow's mirror of a version matches the signed statement: tags, record, links,
files.

A writer to MLflow can change each of them. The signed statement is read once and compared; each
difference is one problem. Other programs' additions, such as their tags, are ignored.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agentworld.audit.checks.registration import read_record, verify_registration
from agentworld.audit.read.evidence import Finding, state_of
from agentworld.errors import EvidenceError
from agentworld.lineage.base import WHOLE, Agent, Registry, StoredVersion, WorldModel
from agentworld.lineage.data_input import data_inputs
from agentworld.lineage.tags import tags_of
from agentworld.records.base import Digest, digest_json
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.garbled import read_list, readable, reading
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.signing.keys import TrustedKeys

Facts = Mapping[str, object]
"""Facts about a version or an alias, by name; null if there is no value."""


_STATEMENT = "the signed statement says"


def differences(mirror: Facts, expected: Facts, source: str = _STATEMENT) -> Iterator[str]:
    """Differences between MLflow and the expected facts, with both values; `source` names the
    origin of the expected ones.
    """
    for name, value in expected.items():
        if (mirrored := mirror.get(name)) != value:
            yield (
                f"mirror differs in {name}: MLflow says {_text(mirrored)}, {source} {_text(value)}"
            )


def verify_version(
    stored: StoredVersion,
    registry: Registry,
    step_keys: TrustedKeys,
    on_progress: OnProgress = ignore_progress,
    registration: RegisteredVersion | None = None,
) -> Finding:
    """Checks the registry's data of a version, also against its `registration` in the ledger."""
    ref, entity = stored.version.ref, read_entity(stored)
    mirror = _mirrored(stored)
    unsigned = tuple(readable("its record", _record_problems(stored, step_keys, registration)))
    is_signed = stored.signature is not None and not unsigned
    if registration:
        is_signed = is_signed or registration.record == mirror["record"]
    source = _STATEMENT if is_signed else "the record says"
    files = _file_differences(stored, entity, registry, on_progress, source)
    problems = (
        *unsigned,
        *differences(mirror, _states_of(stored), "and it should be"),
        *differences(mirror, _facts_of(entity), source),
        *differences(mirror, _registered_facts(registration)),
        *readable("its folder of files", files),
    )
    return Finding(
        subject=str(ref),
        grade=state_of(problems, signed=stored.signature is not None),
        problems=tuple(f"{ref}: {problem}" for problem in problems),
    )


def read_entity(stored: StoredVersion) -> WorldModel | Agent | None:
    """The version's record; null if it cannot be read."""
    with suppress(EvidenceError), reading("its record"):  # `_record_problems` reports it
        return read_record(stored.record or "")
    return None


def _record_problems(
    stored: StoredVersion, trusted: TrustedKeys, registration: RegisteredVersion | None
) -> Iterator[str]:
    """The reasons why a record has no valid signature, if any record is signed."""
    if stored.record is None:
        yield "its record lineage.json is missing"
        return
    entity = read_record(stored.record)
    is_attested = isinstance(entity, Agent) and entity.edge  # it was signed as its edge was
    if stored.signature is not None:
        verify_registration(stored, trusted)
    elif is_attested or registration:
        yield "its signature registration.dsse.json is missing"


def _states_of(stored: StoredVersion) -> Facts:
    """The expected states after a complete registration, which no statement contains."""
    facts = {"run state": "present", "status": WHOLE, "model state": WHOLE}
    if stored.locations:
        facts["location"] = stored.locations[-1].rstrip("/")
    return facts


def _facts_of(entity: WorldModel | Agent | None) -> Facts:
    if entity is None:
        return {}
    tags = {f"tag {name}": value for name, value in tags_of(entity).items()}
    return {"data sets": _texts(data_inputs(entity.stages)), **tags}


def _registered_facts(registration: RegisteredVersion | None) -> Facts:
    return {**dict(registration.links), "record": registration.record} if registration else {}


def _mirrored(stored: StoredVersion) -> Facts:
    return {
        "run state": stored.run,
        "status": stored.status,
        "model state": stored.model,
        "location": stored.locations[0].rstrip("/") if stored.locations else None,
        "data sets": _texts(stored.data),
        **{f"tag {name}": value for name, value in stored.version.tags.items()},
        **dict(stored.links),
        "record": digest_of_record(stored.record),
    }


def _texts(items: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted(map(str, items)))


def _text(value: object) -> str:
    if value in (None, ()):
        return "nothing"
    return repr(", ".join(value) if isinstance(value, tuple) else value)


def garbled_in(registry: Registry) -> Iterator[str]:
    """Invalid versions and aliases of ours in a registry."""
    sentences, problems = read_list("the registry", registry.garbled)
    yield from (*sentences, *problems)


def digest_of_record(record: str | None) -> Digest | None:
    """Null if it is missing or unreadable, which is reported elsewhere."""
    try:
        with reading("its record"):
            return digest_json(json.loads(record or ""))
    except EvidenceError:
        return None


def _file_differences(
    stored: StoredVersion,
    entity: WorldModel | Agent | None,
    registry: Registry,
    on_progress: OnProgress,
    source: str,
) -> Iterator[str]:
    if entity is None or stored.model == "missing":
        return
    with tempfile.TemporaryDirectory() as folder:
        registry.fetch(stored.version.ref, Path(folder))
        files = ArtifactManifest.of(Path(folder), on_progress).digest
    yield from differences({"files": files}, {"files": entity.artifact}, source)

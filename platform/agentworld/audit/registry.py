"""Whether what a registry keeps is what was registered: tags, record, files, run, signature.

Who can write to a registry can change each of them; here they are compared with each other, and
the record with what the step that registered it signed.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from agentworld.audit.evidence import EvidenceState, state_of
from agentworld.audit.registration import read_record, registration_in
from agentworld.errors import EvidenceError
from agentworld.evidence.keys import TrustedKeys
from agentworld.evidence.registration import check_registration
from agentworld.lineage.base import Agent, Registry, StoredVersion, VersionRef, WorldModel
from agentworld.lineage.tags import tags_of
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import Tick, no_tick

_ADDED = ".data"
"""The end of tags that a version without a signature may lack: older ones have neither."""


class VersionVerification(Record):
    """The answer to: is this version what was registered?"""

    version: str
    state: EvidenceState
    """`unsigned` where it was registered before there were signatures."""
    problems: tuple[str, ...]
    """None where it is intact."""


def verify_version(
    stored: StoredVersion, registry: Registry, step_keys: TrustedKeys, tick: Tick = no_tick
) -> VersionVerification:
    """Checks all that a registry keeps of a version."""
    ref = stored.version.ref
    problems = (
        *_missing(stored),
        *_problems_of_record(stored, step_keys),
        *_problems_of_files(stored, registry, tick),
    )
    return VersionVerification(
        version=str(ref),
        state=state_of(problems, signed=stored.signature is not None),
        problems=tuple(f"{ref}: {problem}" for problem in problems),
    )


def _missing(stored: StoredVersion) -> Iterator[str]:
    if stored.run != "active":
        yield f"the run that registered it is {stored.run}"
    if stored.model != "READY":
        yield f"its logged model is {stored.model}, and not READY"


def _problems_of_record(stored: StoredVersion, trusted: TrustedKeys) -> Iterator[str]:
    name = stored.version.ref.name
    if stored.record is None:
        yield "its record lineage.json is gone"
        return
    try:
        what = read_record(stored.record)
        yield from _problems_of_tags(stored, what)
        if stored.signature is None and isinstance(what, Agent) and what.edge:
            yield "its signature registration.dsse.json is gone"  # it was signed as its edge was
        if stored.signature is not None:
            check_registration(registration_in(name, stored.record), stored.signature, trusted)
    except EvidenceError as error:
        yield str(error)


def _problems_of_tags(stored: StoredVersion, what: WorldModel | Agent) -> Iterator[str]:
    for name, value in tags_of(what).items():
        told = stored.version.tags.get(name)
        if told is None and stored.signature is None and name.endswith(_ADDED):
            continue
        if told != value:
            yield f"its tag {name} says {told!r}, and its record {value!r}"


def _problems_of_files(stored: StoredVersion, registry: Registry, tick: Tick) -> Iterator[str]:
    if stored.record is None or stored.model == "missing":
        return
    try:
        artifact = read_record(stored.record).artifact
    except EvidenceError:
        return
    found = _artifact_of(stored.version.ref, registry, tick)
    if found != artifact:
        yield f"its files are {found}, and its record names {artifact}"


def _artifact_of(ref: VersionRef, registry: Registry, tick: Tick) -> Digest:
    with tempfile.TemporaryDirectory() as folder:
        registry.fetch(ref, Path(folder))
        return ArtifactManifest.of(Path(folder), tick).digest

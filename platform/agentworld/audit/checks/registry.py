"""Whether what a registry keeps is what was registered: tags, record, files, run, signature.

Who can write to a registry can change each of them; here they are compared with each other, and
the record and what it is made of with what the step that registered it signed.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from agentworld.audit.checks.registration import read_record, registration_in
from agentworld.audit.read.evidence import Finding, state_of
from agentworld.errors import EvidenceError
from agentworld.lineage.base import WHOLE, Agent, Registry, StoredVersion, VersionRef, WorldModel
from agentworld.lineage.data_input import data_inputs
from agentworld.lineage.tags import tags_of
from agentworld.records.base import Digest, digest_json
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.garbled import read_list, readable, reading
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.signing.keys import TrustedKeys
from agentworld.signing.registration import check_registration

_ADDED = ".data"
"""The end of tags that a version without a signature may lack: older ones have neither."""


def verify_version(
    stored: StoredVersion,
    registry: Registry,
    step_keys: TrustedKeys,
    on_progress: OnProgress = ignore_progress,
    registration: RegisteredVersion | None = None,
) -> Finding:
    """Checks all that a registry keeps of a version, also by its `registration` in the ledger."""
    ref = stored.version.ref
    of_record = _problems_of_record(stored, step_keys, registration)
    of_links = _problems_of_links(stored, registration) if registration else ()
    problems = (
        *_missing(stored),
        *readable("its record lineage.json", of_record),
        *readable("its record lineage.json", of_links),
        *readable("its folder of files", _problems_of_files(stored, registry, on_progress)),
    )
    return Finding(
        subject=str(ref),
        grade=state_of(problems, signed=stored.signature is not None),
        problems=tuple(f"{ref}: {problem}" for problem in problems),
    )


def _missing(stored: StoredVersion) -> Iterator[str]:
    if stored.run != "present":
        yield f"the run that registered it is {stored.run}"
    if stored.status != WHOLE:
        yield f"its status is {stored.status}, and not {WHOLE}"
    if stored.model != WHOLE:
        yield f"its model is {stored.model}, and not {WHOLE}"
    if len({location.rstrip("/") for location in stored.locations}) > 1:
        by_name, of_model = stored.locations
        yield f"its files are told to be in {by_name}, and its model's are in {of_model}"


def _problems_of_record(
    stored: StoredVersion, trusted: TrustedKeys, registration: RegisteredVersion | None
) -> Iterator[str]:
    name = stored.version.ref.name
    if stored.record is None:
        yield "its record lineage.json is gone"
        return
    try:
        entity = read_record(stored.record)
        yield from _problems_of_tags(stored, entity)
        yield from _problems_of_data(stored, entity)
        is_attested = isinstance(entity, Agent) and entity.edge  # it was signed as its edge was
        if stored.signature is None and (is_attested or registration):
            yield "its signature registration.dsse.json is gone"
        if stored.signature is not None:
            check_registration(registration_in(name, stored.record), stored.signature, trusted)
    except EvidenceError as error:
        yield str(error)


def _problems_of_tags(stored: StoredVersion, entity: WorldModel | Agent) -> Iterator[str]:
    if not stored.version.tags:
        yield "it has no tag of ours any more, so that no search finds it"
        return
    for name, value in tags_of(entity).items():
        tag = stored.version.tags.get(name)
        if tag is None and stored.signature is None and name.endswith(_ADDED):
            continue
        if tag != value:
            yield f"its tag {name} says {tag!r}, and its record {value!r}"


def _problems_of_data(stored: StoredVersion, entity: WorldModel | Agent) -> Iterator[str]:
    if stored.run == "missing" or (stored.signature is None and not stored.data):  # an older one
        return
    record_inputs, run_inputs = Counter(data_inputs(entity.stages)), Counter(stored.data)
    for item in (record_inputs - run_inputs).elements():
        yield f"its run lacks an input: the data set {item.name}, which {item.readers} read"
    for item in (run_inputs - record_inputs).elements():
        yield (
            f"its run has an input that its record does not: the data set {item.name}, digest"
            f" {item.shortened}, source {item.source_type} {item.source}, read by {item.readers}"
        )


def _problems_of_links(stored: StoredVersion, registration: RegisteredVersion) -> Iterator[str]:
    links, signed = stored.links, registration.links
    record = digest_of_record(stored.record)
    if record not in (None, registration.record):
        yield f"its record is {record}, and it was registered with {registration.record}"
    if links.run != signed.run:
        yield f"its run is {links.run}, and it was registered by {signed.run}"
    if links.model != signed.model:
        yield f"its model is {links.model}, and it was registered with {signed.model}"
    if stored.run == "missing":
        return
    for model in (Counter(signed.inputs) - Counter(links.inputs)).elements():
        yield f"its run lacks an input that it had: the model {model}"
    for added in (Counter(links.inputs) - Counter(signed.inputs)).elements():
        yield f"its run has an input that it had not: the model {added}"


def garbled_in(registry: Registry) -> Iterator[str]:
    """What a registry has that can be no version or alias of ours."""
    sentences, problems = read_list("the registry", registry.garbled)
    yield from (*sentences, *problems)


def digest_of_record(record: str | None) -> Digest | None:
    """Null where it is gone or cannot be read, which is told already."""
    try:
        with reading("its record"):
            return digest_json(json.loads(record or ""))
    except EvidenceError:
        return None


def _problems_of_files(
    stored: StoredVersion, registry: Registry, on_progress: OnProgress
) -> Iterator[str]:
    if stored.record is None or stored.model == "missing":
        return
    try:
        artifact = read_record(stored.record).artifact
    except EvidenceError:
        return
    digest = _artifact_of(stored.version.ref, registry, on_progress)
    if digest != artifact:
        yield f"its files are {digest}, and its record names {artifact}"


def _artifact_of(ref: VersionRef, registry: Registry, on_progress: OnProgress) -> Digest:
    with tempfile.TemporaryDirectory() as folder:
        registry.fetch(ref, Path(folder))
        return ArtifactManifest.of(Path(folder), on_progress).digest

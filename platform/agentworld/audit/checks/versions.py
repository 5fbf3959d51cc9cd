"""Compares versions of the registry with their signed statements and their runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from agentworld.audit.checks.edges import UNSIGNED_ORIGIN, breaks_of_run, edge_to
from agentworld.audit.checks.registry import (
    differences,
    digest_of_record,
    read_entity,
    verify_version,
)
from agentworld.audit.checks.statements import Registrations, registrations
from agentworld.audit.read.evidence import Finding
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, NotFound
from agentworld.lineage.base import Agent, StoredVersion, Version, VersionRef
from agentworld.records.base import Digest
from agentworld.records.garbled import readable, reading
from agentworld.records.progress import OnProgress, share_of
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.signing.edge import contradictions


class CheckedVersion(NamedTuple):
    """A version of the registry and its problems."""

    ref: VersionRef
    agent: Agent | None
    """The agent's record; null if it cannot be read, and for a world model."""
    verification: Finding
    contradictions: tuple[str, ...]
    """Contradictions to the ledger's record of its run."""
    record: Digest | None = None
    """The digest of its record; null if it cannot be read."""


def all_registrations(sources: Sources) -> Registrations:
    """The signed registrations of all versions."""
    if sources.evidence is None:
        return Registrations()
    with suppress(EvidenceError), reading("the versions"):  # `verify_ledger` reports it
        return registrations(sources.ledger.attestations, sources.evidence)
    return Registrations()


def registrations_of(ref: VersionRef, sources: Sources) -> Registrations:
    """The signed registrations of one version."""
    if sources.evidence is None:
        return Registrations()
    return registrations(sources.ledger.attestations, sources.evidence, str(ref))


def all_refs(
    versions: Iterable[Version], statements: Iterable[RegisteredVersion]
) -> list[VersionRef]:
    """All registered versions, and those that are signed but hidden."""
    refs = {version.ref for version in versions}
    refs |= {
        VersionRef(name=registration.registered_as, version=registration.version)
        for registration in statements
    }
    return sorted(refs, key=lambda ref: (ref.name, ref.version))


def find_replaced(
    statements: Iterable[RegisteredVersion], by_ref: Mapping[str, RegisteredVersion]
) -> Iterator[RegisteredVersion]:
    """Registrations whose number the registry assigned again, and which were not repeated."""
    newest = {
        (registration.registered_as, registration.record): registration
        for registration in statements
    }
    return (
        registration
        for registration in newest.values()
        if by_ref[registration.ref] is not registration
    )


def find_returned(registered: Registrations, versions: Iterable[CheckedVersion]) -> Iterator[str]:
    """Withdrawn versions that exist without a new registration."""
    counted = {registration.ref for registration in registered.counted}
    withdrawn = {(registration.ref, registration.record) for registration in registered.withdrawn}
    for version in versions:
        ref = str(version.ref)
        if ref not in counted and (ref, version.record) in withdrawn:
            yield f"{ref}: it was withdrawn but exists; delete it, or register it again"


def check_versions(
    refs: Sequence[VersionRef],
    sources: Sources,
    by_ref: Mapping[str, RegisteredVersion | None],
    on_progress: OnProgress,
) -> list[CheckedVersion]:
    """Checks each version, with its signed registration."""
    parts = [(done / len(refs), (done + 1) / len(refs)) for done in range(len(refs))]
    return [
        check_version(ref, sources, by_ref.get(str(ref)), share_of(on_progress, *part))
        for ref, part in zip(refs, parts, strict=True)
    ]


def check_version(
    ref: VersionRef,
    sources: Sources,
    registration: RegisteredVersion | None,
    on_progress: OnProgress,
) -> CheckedVersion:
    """Checks one version."""
    try:
        with reading("its record in the registry"):
            stored = sources.registry.stored(ref)
    except (EvidenceError, NotFound) as error:
        is_gone = registration and isinstance(error, NotFound)
        problems = (
            describe_missing(registration) if registration and is_gone else f"{ref}: {error}",
        )
        broken = Finding(subject=str(ref), grade="broken", problems=problems)
        return CheckedVersion(ref, None, broken, ())
    verification, entity = _verify(stored, sources, registration, on_progress), read_entity(stored)
    agent = entity if isinstance(entity, Agent) else None
    reasons = _contradictions(ref, agent, sources) if agent else ()
    record = digest_of_record(stored.record)
    return CheckedVersion(ref, agent, verification, tuple(dict.fromkeys(reasons)), record)


def _verify(
    stored: StoredVersion,
    sources: Sources,
    registration: RegisteredVersion | None,
    on_progress: OnProgress,
) -> Finding:
    verification = verify_version(
        stored, sources.registry, sources.step_keys, on_progress, registration
    )
    if sources.evidence is None or registration or verification.grade != "verified":
        return verification
    return verification.model_copy(update={"grade": "unsigned"})  # no ledger would miss it


def describe_missing(registration: RegisteredVersion) -> str:
    (difference,) = differences({}, {"version": registration.artifact})
    return f"{registration.ref}: {difference}; restore it, or see `agentworld audit withdrawn`"


def _contradictions(ref: VersionRef, agent: Agent, sources: Sources) -> Iterator[str]:
    """Contradictions between an agent's version and the ledger's record of its run."""
    run, edge = f"its run {agent.run}", _reasons(ref, agent, sources)
    yield from readable(run, _breaks(agent, sources))
    yield from readable("its edge", edge)
    yield from readable(run, _others_outcomes(agent, sources))


def _breaks(agent: Agent, sources: Sources) -> Iterator[str]:
    try:
        yield from breaks_of_run(agent, sources.ledger.run(agent.run))
    except NotFound:
        yield f"the ledger has no run {agent.run}"


def _reasons(ref: VersionRef, agent: Agent, sources: Sources) -> Iterator[str]:
    """The reasons why its edge proves nothing, except for versions from before edges were
    signed.
    """
    edge = edge_to(ref.name, agent, sources)
    is_older = agent.edge is None and edge is not None and edge.problems == (UNSIGNED_ORIGIN,)
    yield from edge.problems if edge and not is_older else ()


def _others_outcomes(agent: Agent, sources: Sources) -> Iterator[str]:
    """Current contradictions: an edge is signed once, and another run may have been closed
    since.
    """
    with suppress(EvidenceError, NotFound):  # its run is reported above
        run = sources.ledger.run(agent.run)
        same = sources.runs_for_agent_weights(agent.artifact)
        yield from contradictions(run, same)

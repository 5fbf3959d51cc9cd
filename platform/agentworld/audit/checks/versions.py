"""Versions of the registry, compared with what was signed of them and with their runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from agentworld.audit.checks.edges import UNSIGNED_ORIGIN, edge_to
from agentworld.audit.checks.registry import (
    VersionVerification,
    differences,
    digest_of_record,
    read_entity,
    verify_version,
)
from agentworld.audit.checks.statements import Registrations, registrations
from agentworld.audit.read.at_time import is_as_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, NotFound
from agentworld.lineage.base import Agent, StoredVersion, Version, VersionRef
from agentworld.records.base import Digest
from agentworld.records.garbled import readable, reading
from agentworld.records.progress import OnProgress, share_of
from agentworld.records.run import AgentRun
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.signing.edge import contradictions


class CheckedVersion(NamedTuple):
    """A version of the registry, and what is wrong with it."""

    ref: VersionRef
    agent: Agent | None
    """As its record has it; null where it cannot be read, and for a world model."""
    verification: VersionVerification
    contradictions: tuple[str, ...]
    """Where it is not what the ledger says of its run."""
    record: Digest | None = None
    """Of its record; null where that cannot be read."""


def all_registrations(sources: Sources) -> Registrations:
    """What was signed of all versions when they were registered."""
    if sources.evidence is None:
        return Registrations()
    with suppress(EvidenceError), reading("the versions"):  # which `verify_ledger` tells
        all_parts = registrations(sources.ledger.attestations, sources.evidence)
        parts = (
            tuple(statement for statement in part if is_as_of(statement.at, sources.at))
            for part in all_parts
        )
        return Registrations(*parts)
    return Registrations()


def registrations_of(ref: VersionRef, sources: Sources) -> Registrations:
    """What was signed of one."""
    if sources.evidence is None:
        return Registrations()
    return registrations(sources.ledger.attestations, sources.evidence, str(ref))


def all_refs(
    versions: Iterable[Version], statements: Iterable[RegisteredVersion]
) -> list[VersionRef]:
    """All that are there, and those that should be, also where they hide."""
    refs = {version.ref for version in versions}
    refs |= {
        VersionRef(name=registration.registered_as, version=registration.version)
        for registration in statements
    }
    return sorted(refs, key=lambda ref: (ref.name, ref.version))


def find_replaced(
    statements: Iterable[RegisteredVersion], by_ref: Mapping[str, RegisteredVersion]
) -> Iterator[RegisteredVersion]:
    """What was registered under a number that the registry gave again, and not once more."""
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
    """What was withdrawn and is there again, though nobody registered it again."""
    counted = {registration.ref for registration in registered.counted}
    withdrawn = {(registration.ref, registration.record) for registration in registered.withdrawn}
    for version in versions:
        ref = str(version.ref)
        if ref not in counted and (ref, version.record) in withdrawn:
            yield f"{ref}: it was withdrawn and is there again; delete it, or register it again"


def check_versions(
    refs: Sequence[VersionRef],
    sources: Sources,
    by_ref: Mapping[str, RegisteredVersion | None],
    on_progress: OnProgress,
) -> list[CheckedVersion]:
    """Each, with what was signed of it when it was registered."""
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
    """One, whatever there is of it."""
    try:
        with reading("its record in the registry"):
            stored = sources.registry.stored(ref)
    except (EvidenceError, NotFound) as error:
        is_gone = registration and isinstance(error, NotFound)
        problems = (
            describe_missing(registration) if registration and is_gone else f"{ref}: {error}",
        )
        broken = VersionVerification(version=str(ref), state="broken", problems=problems)
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
) -> VersionVerification:
    verification = verify_version(
        stored, sources.registry, sources.step_keys, on_progress, registration
    )
    if sources.evidence is None or registration or verification.state != "verified":
        return verification
    return verification.model_copy(update={"state": "unsigned"})  # nobody would miss it


def describe_missing(registration: RegisteredVersion) -> str:
    (difference,) = differences({}, {"version": registration.artifact})
    return f"{registration.ref}: {difference}; restore it, or see `agentworld audit withdrawn`"


def _contradictions(ref: VersionRef, agent: Agent, sources: Sources) -> Iterator[str]:
    """Where an agent's version is not what the ledger says of its run."""
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
    """Why its edge proves nothing, but for what was registered before there were any."""
    edge = edge_to(ref.name, agent, sources)
    is_older = agent.edge is None and edge is not None and edge.reasons == (UNSIGNED_ORIGIN,)
    yield from edge.reasons if edge and not is_older else ()


def _others_outcomes(agent: Agent, sources: Sources) -> Iterator[str]:
    """By now: an edge is joined once, and another run may have been closed since."""
    with suppress(EvidenceError, NotFound):  # its run is told above
        run = sources.ledger.run(agent.run)
        same = sources.runs_for_agent_weights(agent.artifact)
        yield from contradictions(run, same)


def breaks_of_run(agent: Agent, run: AgentRun) -> Iterator[str]:
    """Where what the registry says of an agent is not what the ledger says of its run."""
    checkpoint = agent.checkpoint
    if run.simulator != checkpoint.simulator:
        yield f"the run was served by {run.simulator}, the checkpoint names {checkpoint.simulator}"
    if run.final_weights != agent.artifact:
        yield f"the run ended with {run.final_weights}, the version stands for {agent.artifact}"
    if checkpoint.parents != (run.opening.starting_weights,):
        weights, parents = run.opening.starting_weights, ", ".join(checkpoint.parents)
        yield f"the run began with {weights}, the checkpoint names {parents}"

"""Checks all records of agents against their signatures and against each other.

The whole ledger and every version of the registry are checked separately, and then compared.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agentworld.audit.checks.alias_history import agent_changes, in_use
from agentworld.audit.checks.alias_mirror import agent_problems, registry_problems
from agentworld.audit.checks.edges import all_edges
from agentworld.audit.checks.ledger import Verification, verify_ledger
from agentworld.audit.checks.mirror import statement_problems
from agentworld.audit.checks.registry import differences, garbled_in
from agentworld.audit.checks.run import verify_any
from agentworld.audit.checks.statements import Registrations
from agentworld.audit.checks.step_outputs import step_problems
from agentworld.audit.checks.validation import validation_problems
from agentworld.audit.checks.versions import (
    CheckedVersion,
    all_refs,
    all_registrations,
    check_version,
    check_versions,
    describe_missing,
    find_replaced,
    find_returned,
    registrations_of,
)
from agentworld.audit.read.evidence import Finding, state_of
from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.lineage.base import Agent, RegisteredAgent, VersionRef
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.garbled import read_list, readable, reading
from agentworld.records.progress import OnProgress, ignore_progress, share_of
from agentworld.records.statements.alias import split_alias
from agentworld.records.statements.base import statement_kinds
from agentworld.records.statements.edge import SignedEdge
from agentworld.storage.simulators import SimulatorStore

_LIST = "the registry's list of versions"


def verify_everything(sources: Sources, on_progress: OnProgress = ignore_progress) -> Verification:
    """Checks the ledger and all versions of the registry, now or as of a past time."""
    sources = sources.for_many()
    # Read first, so that it is not newer than the registry.
    signed, edges = all_registrations(sources), _edges(sources)
    present, unlisted = read_list(_LIST, sources.versions)  # signed versions are read nevertheless
    refs = all_refs(present, signed.counted)
    runs = sources.run_names()
    share = len(runs) / max(1, len(runs) + len(refs))
    ledger = _verify_ledger(runs, sources, share_of(on_progress, 0, share))
    by_ref = {registration.ref: registration for registration in signed.counted}
    versions = check_versions(refs, sources, by_ref, share_of(on_progress, share, 1))
    in_registry = _find_unregistered(edges, versions, signed, sources)
    problems = (
        *dict.fromkeys((*unlisted, *garbled_in(sources.registry))),
        *readable("what is in use", registry_problems(sources)),
        *readable("what is in use", _find_exchanged(versions, sources, "")),
        *readable(_LIST, in_registry),
        *map(describe_missing, find_replaced(signed.counted, by_ref)),
        *find_returned(signed, versions),
        *_simulators(sources.store),
        *readable("what steps signed of validations", validation_problems(sources)),
        *step_problems(sources.store),
    )
    others = (*ledger.others, _finding("the registry and the store", problems))
    return _verification(ledger.runs, versions, others, sources)


def verify_agent(
    ref: VersionRef, sources: Sources, on_progress: OnProgress = ignore_progress
) -> Verification:
    """Checks an agent's version, its uses, run and simulator, and the world model that it serves.

    Raises NotFound if it is not registered, InputError if it is not an agent.
    """
    sources.check_registered(ref)
    signed = registrations_of(ref, sources)
    own = check_version(ref, sources, signed.newest, share_of(on_progress, 0, 0.5))
    if own.agent is None and not own.verification.problems:
        raise InputError(f"{ref} is not an agent; name a version of one")
    runs, simulator = _run_of(own.agent, sources) if own.agent else ({}, None)
    manifest = manifest_of(simulator, sources.store) if simulator else None
    refs, unlisted = read_list(_LIST, lambda: sources.world_models_of(manifest))
    by_ref = {str(ref): registrations_of(ref, sources).newest for ref in refs}
    models = check_versions(refs, sources, by_ref, share_of(on_progress, 0.5, 1))
    problems = (
        *unlisted,
        *readable("what is in use", agent_problems(ref, sources)),
        *readable("what is in use", _find_exchanged([own], sources, ref.name)),
        *_version_problems([own, *models], sources),
        *find_returned(signed, [own]),
        *_simulators(sources.store, [simulator] if simulator else []),
    )
    others = (_finding("what made it", problems),)
    return _verification(runs, [own, *models], others, sources)


def _verify_ledger(names: Sequence[str], sources: Sources, on_progress: OnProgress) -> Verification:
    """Checks the ledger; if nothing was signed, only its runs."""
    if sources.evidence:
        return verify_ledger(sources.ledger, sources.evidence, on_progress)
    return Verification(runs={name: _unsigned_run(name) for name in names})


def _unsigned_run(name: str) -> Finding:
    return Finding(subject=f"run {name}", grade="unsigned")


def _finding(subject: str, problems: tuple[str, ...]) -> Finding:
    return Finding(subject=subject, grade=state_of(problems, signed=True), problems=problems)


def _verification(
    runs: dict[str, Finding],
    versions: Sequence[CheckedVersion],
    others: tuple[Finding, ...],
    sources: Sources,
) -> Verification:
    return Verification(
        runs=runs,
        versions=tuple(map(_version_finding, versions)),
        others=others,
        at=sources.moment,
    )


def _version_finding(version: CheckedVersion) -> Finding:
    """Adds contradictions to the ledger."""
    contradictions = tuple(f"{version.ref}: {reason}" for reason in version.contradictions)
    finding = version.verification
    if not contradictions:
        return finding
    problems = (*finding.problems, *contradictions)
    return finding.model_copy(update={"grade": "broken", "problems": problems})


def _edges(sources: Sources) -> list[SignedEdge]:
    if sources.evidence is None:
        return []
    with suppress(EvidenceError), reading("the edges"):  # `verify_ledger` reports it
        return list(all_edges(sources.ledger.attestations, sources.evidence))
    return []


def _find_unregistered(
    edges: Iterable[SignedEdge],
    versions: Sequence[CheckedVersion],
    registered: Registrations,
    sources: Sources,
) -> Iterator[str]:
    """Signed registrations whose version is hidden or missing, as after a killed registration.

    An edge that was disputed from the start is only a claim. If the agent was registered again, the
    newest edge must belong to a version.
    """
    edge_digests: dict[tuple[str, Digest, str], set[Digest | None]] = {}
    for name, agent in ((version.ref.name, version.agent) for version in versions if version.agent):
        edge_digests.setdefault((name, agent.artifact, agent.run), set()).add(agent.edge_digest)
    registered_versions = sources.registry.versions(kind="agent") if sources.at else []
    for registered_agent in filter(None, map(RegisteredAgent.from_tags, registered_versions)):
        key = registered_agent.ref.name, registered_agent.artifact, registered_agent.run
        edge_digests.setdefault(key, set()).add(registered_agent.edge_digest)
    signed = [signed_edge for signed_edge in edges if signed_edge.edge.grade != "disputed"]
    signed.sort(key=lambda signed_edge: signed_edge.edge.at)
    newest = {(e.edge.claim.agent, e.edge.claim.artifact, e.edge.run): e for e in signed}
    for key in sorted(newest.keys() - registered.withdrawn_keys):
        (name, artifact, run), edge = key, digest_bytes(newest[key].envelope.encode())
        digests = edge_digests.get(key, set())
        if edge not in digests:
            mirrored = tuple(sorted(digest or "an unsigned one" for digest in digests))
            edge_name = f"edge of run {run} to {artifact}"
            for problem in differences({edge_name: mirrored}, {edge_name: edge}):
                yield f"{name}: {problem}"


def _version_problems(versions: Sequence[CheckedVersion], sources: Sources) -> Iterator[str]:
    """Problems of the steps' statements about these versions and about the agents among them."""
    if sources.evidence is None:
        return
    for version in versions:
        artifact = version.agent.artifact if version.agent else None
        subjects = {"version": str(version.ref), "weights": artifact}
        for kind in statement_kinds().values():
            if subject := subjects.get(kind.about):
                attestations, evidence = sources.ledger.attestations, sources.evidence
                signed = statement_problems(kind, attestations, evidence, subject)
                yield from readable(f"what was signed of {subject}", signed)
        if artifact:
            in_store = validation_problems(sources, artifact)
            yield from readable("what steps signed of validations", in_store)


def _find_exchanged(
    versions: Sequence[CheckedVersion], sources: Sources, name: str
) -> Iterator[str]:
    """Uses whose name and number now belong to another agent."""
    if sources.evidence is None:
        return
    agents = {str(version.ref): version.agent for version in versions if version.agent}
    signed = agent_changes(sources.ledger.attestations, sources.evidence, name)
    for change in in_use(signed):
        if agent := agents.get(change.target):
            label = f"agent in use as {split_alias(change.alias)[1]}"
            mirrored = {label: f"{agent.artifact} of run {agent.run}"}
            in_use_agent = {label: f"{change.subject} of run {change.run}"}
            for problem in differences(mirrored, in_use_agent):
                yield f"{change.target}: {problem}"


def _simulators(store: Path, digests: Sequence[Digest] | None = None) -> Iterator[str]:
    """Changed simulators among all or some; simulators pinned elsewhere are not here to check."""
    pinned = SimulatorStore(store)
    for digest in pinned.digests():
        try:
            if digests is None or digest in digests:
                with reading("what was pinned"):
                    pinned.find(digest).verify()
        except (EvidenceError, NotFound) as error:
            yield f"simulator {digest}: {error}"


def _run_of(agent: Agent, sources: Sources) -> tuple[dict[str, Finding], Digest | None]:
    """Its run, if the ledger has it, and the simulator that served it.

    If the run is unreadable, the simulator that the trainer named.
    """
    with suppress(NotFound):
        if sources.evidence is None:
            simulator = sources.ledger.run(agent.run).simulator
            return {agent.run: _unsigned_run(agent.run)}, simulator
        verification = verify_any(agent.run, sources.ledger, sources.evidence)
        return {agent.run: verification}, verification.simulator or agent.checkpoint.simulator
    return {}, None

"""Whether all that the platform says of its agents is what was signed, and says one thing.

The whole ledger is checked by itself, every version of the registry by itself, and then what the
one says is held against the other.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agentworld.audit.checks.agent_uses import (
    agent_use_problems,
    agent_uses,
    in_use,
    registry_problems,
)
from agentworld.audit.checks.edges import all_edges
from agentworld.audit.checks.ledger import verify_ledger
from agentworld.audit.checks.mirror import statement_problems
from agentworld.audit.checks.registry import VersionVerification, differences, garbled_in
from agentworld.audit.checks.run import RunVerification, verify_any
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
from agentworld.audit.read.at_time import is_as_of
from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.lineage.base import Agent, RegisteredAgent, VersionRef
from agentworld.records.base import Digest, Record, Sentence, digest_bytes
from agentworld.records.garbled import read_list, readable, reading
from agentworld.records.progress import OnProgress, ignore_progress, share_of
from agentworld.records.statements.base import statement_kinds
from agentworld.records.statements.edge import SignedEdge
from agentworld.storage.simulators import SimulatorStore

_LIST = "the registry's list of versions"


class Verification(Record):
    """The answer to: is everything as it was signed?"""

    runs: dict[Sentence, RunVerification | None]
    """By their ids; null for each where the store has no keys, so that nothing was signed."""
    versions: tuple[VersionVerification, ...]
    problems: tuple[Sentence, ...]
    """Of all of them and all else in the ledger, and where they contradict each other; none where
    all is intact."""
    at: str | None = None
    """The moment of which was asked; null is now. What was there then is verified as it is now."""

    @property
    def num_unsigned(self) -> int:
        """Of runs and versions: they are intact as far as anybody can tell."""
        verifications = [*self.runs.values(), *self.versions]
        return sum(
            verification is None or verification.state == "unsigned"
            for verification in verifications
        )


def verify_everything(sources: Sources, on_progress: OnProgress = ignore_progress) -> Verification:
    """All of the ledger and all versions of the registry, or what was there of them at a moment."""
    sources = sources.for_many()
    # First: the registry is as new as they.
    signed, edges = all_registrations(sources), _edges(sources)
    present, unlisted = read_list(_LIST, sources.versions)  # the signed ones are read all the same
    refs = all_refs(present, signed.counted)
    runs: dict[str, RunVerification | None] = dict.fromkeys(sources.run_names())
    share, problems = len(runs) / max(1, len(runs) + len(refs)), tuple[str, ...]()
    if sources.evidence:
        on_ledger = share_of(on_progress, 0, share)
        verification = verify_ledger(sources.ledger, sources.evidence, on_ledger, sources.at)
        runs, problems = dict(verification.runs), verification.problems
    by_ref = {registration.ref: registration for registration in signed.counted}
    versions = check_versions(refs, sources, by_ref, share_of(on_progress, share, 1))
    in_registry = _find_unregistered(edges, versions, signed, sources)
    other_problems = (
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
    return _verification(runs, versions, (*problems, *other_problems), sources)


def verify_agent(
    ref: VersionRef, sources: Sources, on_progress: OnProgress = ignore_progress
) -> Verification:
    """An agent's version, its uses, its run, its simulator and the world model that this serves.

    Raises NotFound for one that is not registered, InputError for what is no agent.
    """
    sources.check_registered(ref)
    signed = registrations_of(ref, sources)
    own = check_version(ref, sources, signed.newest, share_of(on_progress, 0, 0.5))
    if own.agent is None and not own.verification.problems:
        raise InputError(f"{ref} is no agent; name a version of one")
    runs, simulator = _run_of(own.agent, sources) if own.agent else ({}, None)
    manifest = manifest_of(simulator, sources.store) if simulator else None
    refs, unlisted = read_list(_LIST, lambda: sources.world_models_of(manifest))
    by_ref = {str(ref): registrations_of(ref, sources).newest for ref in refs}
    models = check_versions(refs, sources, by_ref, share_of(on_progress, 0.5, 1))
    of_runs = (problem for run in runs.values() if run for problem in run.qualified_problems)
    other_problems = (
        *unlisted,
        *readable("what is in use", agent_use_problems(sources, ref)),
        *readable("what is in use", _find_exchanged([own], sources, ref.name)),
        *_version_problems([own, *models], sources),
        *find_returned(signed, [own]),
        *_simulators(sources.store, [simulator] if simulator else []),
    )
    return _verification(runs, [own, *models], (*of_runs, *other_problems), sources)


def _verification(
    runs: dict[str, RunVerification | None],
    versions: Sequence[CheckedVersion],
    problems: tuple[str, ...],
    sources: Sources,
) -> Verification:
    return Verification(
        runs=runs,
        versions=tuple(version.verification for version in versions),
        problems=(
            *problems,
            *(problem for version in versions for problem in version.verification.problems),
            *(
                f"{version.ref}: {reason}"
                for version in versions
                for reason in version.contradictions
            ),
        ),
        at=sources.moment,
    )


def _edges(sources: Sources) -> list[SignedEdge]:
    if sources.evidence is None:
        return []
    with suppress(EvidenceError), reading("the edges"):  # which `verify_ledger` tells
        signed = all_edges(sources.ledger.attestations, sources.evidence)
        return [signed_edge for signed_edge in signed if is_as_of(signed_edge.edge.at, sources.at)]
    return []


def _find_unregistered(
    edges: Iterable[SignedEdge],
    versions: Sequence[CheckedVersion],
    registered: Registrations,
    sources: Sources,
) -> Iterator[str]:
    """What was signed to be registered, and hides or is gone; a killed registration looks so.

    What was disputed from the start is no more than a claim that somebody made. Of one that was
    registered again, the newest edge has to be some version's.
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
    """What is wrong with what steps signed of these versions, and of the agents among them."""
    if sources.evidence is None:
        return
    for version in versions:
        artifact = version.agent.artifact if version.agent else None
        subjects = {"version": str(version.ref), "weights": artifact}
        for kind in statement_kinds().values():
            if subject := subjects.get(kind.about):
                arguments = sources.ledger.attestations, sources.evidence, sources.at, subject
                signed = statement_problems(kind, *arguments)
                yield from readable(f"what was signed of {subject}", signed)
        if artifact:
            in_store = validation_problems(sources, artifact)
            yield from readable("what steps signed of validations", in_store)


def _find_exchanged(
    versions: Sequence[CheckedVersion], sources: Sources, name: str
) -> Iterator[str]:
    """Where another agent bears the name and the number of what is in use."""
    if sources.evidence is None:
        return
    agents = {str(version.ref): version.agent for version in versions if version.agent}
    signed = agent_uses(sources.ledger.attestations, sources.evidence, name)
    for agent_use in in_use(
        [agent_use for agent_use in signed if is_as_of(agent_use.at, sources.at)]
    ):
        agent = agents.get(agent_use.agent)
        if agent:
            name = f"agent in use as {agent_use.alias}"
            mirrored = {name: f"{agent.artifact} of run {agent.run}"}
            in_use_agent = {name: f"{agent_use.artifact} of run {agent_use.run}"}
            for problem in differences(mirrored, in_use_agent):
                yield f"{agent_use.agent}: {problem}"


def _simulators(store: Path, digests: Sequence[Digest] | None = None) -> Iterator[str]:
    """What is not as it was pinned, of all or of some; one that was pinned elsewhere is not there
    to be checked.
    """
    pinned = SimulatorStore(store)
    for digest in pinned.digests():
        try:
            if digests is None or digest in digests:
                with reading("what was pinned"):
                    pinned.find(digest).verify()
        except (EvidenceError, NotFound) as error:
            yield f"simulator {digest}: {error}"


def _run_of(
    agent: Agent, sources: Sources
) -> tuple[dict[str, RunVerification | None], Digest | None]:
    """Its run, if the ledger has it, and the simulator that served it.

    Where that cannot be read, it is the one that the trainer named.
    """
    with suppress(NotFound):
        if sources.evidence is None:
            return {agent.run: None}, sources.ledger.run(agent.run).simulator
        verification = verify_any(agent.run, sources.ledger, sources.evidence)
        return {agent.run: verification}, verification.simulator or agent.checkpoint.simulator
    return {}, None

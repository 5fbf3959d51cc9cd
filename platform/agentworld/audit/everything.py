"""Whether all that the platform says of its agents is what was signed, and says one thing.

The whole ledger is checked by itself, every version of the registry by itself, and then what the
one says is held against the other.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentworld.audit.chain import breaks_of_run
from agentworld.audit.deployments import deployment_problems
from agentworld.audit.edges import UNTOLD, all_edges
from agentworld.audit.intact import readable, verify_ledger
from agentworld.audit.registration import read_record
from agentworld.audit.registry import VersionVerification, verify_version
from agentworld.audit.signed_log import reading
from agentworld.audit.sources import Sources, edge_to, manifest_of, verification_of
from agentworld.audit.verify import RunVerification
from agentworld.errors import AgentworldError, EvidenceError, InputError, NotFound
from agentworld.lineage.base import Agent, StoredVersion, VersionRef
from agentworld.records.base import Record
from agentworld.records.edge import Edge
from agentworld.records.progress import Tick, no_tick, share_of
from agentworld.records.run import AgentRun
from agentworld.storage.simulators import SimulatorStore


class Verification(Record):
    """The answer to: is everything as it was signed?"""

    runs: dict[str, RunVerification | None]
    """By their ids; null for each where the store has no keys, so that nothing was signed."""
    versions: tuple[VersionVerification, ...]
    problems: tuple[str, ...]
    """Of all of them and all else in the ledger, and where they contradict each other; none where
    all is intact."""

    @property
    def num_unsigned(self) -> int:
        """Of runs and versions: they are intact as far as anybody can tell."""
        found = [*self.runs.values(), *self.versions]
        return sum(each is None or each.state == "unsigned" for each in found)


class _Checked(NamedTuple):
    """A version of the registry."""

    ref: VersionRef
    agent: Agent | None
    """As its record has it; null where it cannot be read, and for a world model."""
    found: VersionVerification
    contradictions: tuple[str, ...]


def verify_everything(sources: Sources, tick: Tick = no_tick) -> Verification:
    """All of the ledger and all versions of the registry."""
    edges = _edges(sources)  # first: what is registered meanwhile has its edge before
    refs = [version.ref for version in sources.registry.versions()]
    runs: dict[str, RunVerification | None] = dict.fromkeys(sources.ledger.run_names())
    share, problems = len(runs) / max(1, len(runs) + len(refs)), tuple[str, ...]()
    if sources.evidence:
        told = verify_ledger(sources.ledger, sources.evidence, share_of(tick, 0, share))
        used = deployment_problems(sources.ledger.attestations, sources.evidence, sources.registry)
        runs, problems = dict(told.runs), (*told.problems, *used)
    versions = _versions(refs, sources, share_of(tick, share, 1))
    beside = (*_unregistered(edges, versions), *_simulators(sources.store))
    return _together(runs, versions, (*problems, *beside))


def verify_agent(ref: VersionRef, sources: Sources, tick: Tick = no_tick) -> Verification:
    """An agent's version, its run, and the world model that its simulator serves.

    Raises NotFound for one that is not registered, EvidenceError where its run is garbled.
    """
    run = _run_if_there(sources.registry.agent(ref).run, sources)
    models = sources.world_models_of(manifest_of(run.simulator, sources.store)) if run else []
    runs = {run.id: verification_of(run, sources)} if run else {}
    problems = (
        f"run {run}: {each}" for run, found in runs.items() if found for each in found.problems
    )
    return _together(runs, _versions([ref, *models], sources, tick), tuple(problems))


def _together(
    runs: dict[str, RunVerification | None],
    versions: Sequence[_Checked],
    problems: tuple[str, ...],
) -> Verification:
    return Verification(
        runs=runs,
        versions=tuple(version.found for version in versions),
        problems=(
            *problems,
            *(each for version in versions for each in version.found.problems),
            *(f"{each.ref}: {told}" for each in versions for told in each.contradictions),
        ),
    )


def _versions(refs: Sequence[VersionRef], sources: Sources, tick: Tick) -> list[_Checked]:
    return [
        _version(ref, sources, share_of(tick, done / len(refs), (done + 1) / len(refs)))
        for done, ref in enumerate(refs)
    ]


def _version(ref: VersionRef, sources: Sources, tick: Tick) -> _Checked:
    try:
        stored = sources.registry.stored(ref)
        found = verify_version(stored, sources.registry, sources.step_keys, tick)
        agent = _agent(stored)
        told = _contradictions(ref, agent, sources) if agent else iter(())
        contradictions = tuple(readable("its record in the ledger", told))
    except (AgentworldError, ValueError, TypeError) as error:
        if isinstance(error, AgentworldError) and error.retryable:
            raise
        problems = (f"{ref}: {error}",)
        broken = VersionVerification(version=str(ref), state="broken", problems=problems)
        return _Checked(ref, None, broken, ())
    return _Checked(ref, agent, found, contradictions)


def _agent(stored: StoredVersion) -> Agent | None:
    try:
        what = read_record(stored.record or "")
    except EvidenceError:  # which `verify_version` tells
        return None
    return what if isinstance(what, Agent) else None


def _contradictions(ref: VersionRef, agent: Agent, sources: Sources) -> Iterator[str]:
    """Where an agent's version is not what the ledger says of its run."""
    try:
        yield from breaks_of_run(agent, sources.ledger.run(agent.run))
    except NotFound:
        yield f"the ledger has no run {agent.run}"
    edge = edge_to(ref.name, agent, sources)
    is_older = agent.edge is None and edge is not None and edge.reasons == (UNTOLD,)
    if edge and not is_older:
        yield from edge.reasons


def _edges(sources: Sources) -> list[Edge]:
    if sources.evidence is None:
        return []
    with suppress(EvidenceError), reading("its edges"):  # which `verify_ledger` tells
        return list(all_edges(sources.ledger.attestations, sources.evidence))
    return []


def _unregistered(edges: Iterable[Edge], versions: Sequence[_Checked]) -> Iterator[str]:
    """What was signed to be registered, and hides or is gone; a killed registration looks so.

    What was disputed from the start is no more than a claim that somebody made.
    """
    agents = [(each.ref.name, each.agent) for each in versions if each.agent]
    there = {(name, agent.artifact, agent.run) for name, agent in agents}
    claims = [(each.claim, each.run) for each in edges if each.grade != "disputed"]
    told = dict.fromkeys((claim.agent, claim.artifact, run) for claim, run in claims)
    for name, artifact, run in told:
        if (name, artifact, run) not in there:
            yield (
                f"{name}: the registry does not have {artifact}, which run {run} made and whose"
                " edge was signed; restore that version, or register it to its end"
            )


def _simulators(store: Path) -> Iterator[str]:
    """What is not as it was pinned; one that was pinned elsewhere is not there to be checked."""
    pinned = SimulatorStore(store)
    for digest in pinned.digests():
        try:
            pinned.find(digest).verify()
        except (EvidenceError, InputError) as error:
            yield f"simulator {digest}: {error}"


def _run_if_there(run: str, sources: Sources) -> AgentRun | None:
    with suppress(NotFound), reading(f"run {run}"):
        return sources.ledger.run(run)
    return None

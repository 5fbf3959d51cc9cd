"""Whether all that the platform says of its agents is what was signed, and says one thing.

Every run of the ledger is checked by itself, every version of the registry by itself, and then
what the one says is held against the other.
"""

from collections.abc import Iterator, Sequence

from agentworld.audit.chain import breaks_of_run
from agentworld.audit.edges import UNTOLD
from agentworld.audit.registration import read_record
from agentworld.audit.registry import VersionVerification, verify_version
from agentworld.audit.sources import Sources, edge_to, manifest_of, verification_of
from agentworld.audit.verify import RunVerification
from agentworld.errors import EvidenceError, NotFound
from agentworld.lineage.base import Agent, StoredVersion, VersionRef
from agentworld.records.base import Record
from agentworld.records.progress import Tick, no_tick, share_of
from agentworld.records.run import AgentRun


class Verification(Record):
    """The answer to: is everything as it was signed?"""

    runs: dict[str, RunVerification | None]
    """By their ids; null for each where the store has no keys, so that nothing was signed."""
    versions: tuple[VersionVerification, ...]
    problems: tuple[str, ...]
    """Of all of them, and where they contradict each other; none where all is intact."""

    @property
    def num_unsigned(self) -> int:
        """Of runs and versions: they are intact as far as anybody can tell."""
        found = [*self.runs.values(), *self.versions]
        return sum(each is None or each.state == "unsigned" for each in found)


def verify_everything(sources: Sources, tick: Tick = no_tick) -> Verification:
    """All runs of the ledger and all versions of the registry."""
    refs = [version.ref for version in sources.registry.versions()]
    return _verify(sources.ledger.runs(), refs, sources, tick)


def verify_agent(ref: VersionRef, sources: Sources, tick: Tick = no_tick) -> Verification:
    """An agent's version, its run, and the world model that its simulator serves.

    Raises NotFound for one that is not registered.
    """
    run = _run_if_there(sources.registry.agent(ref).run, sources)
    models = sources.world_models_of(manifest_of(run.simulator, sources.store)) if run else []
    return _verify([run] if run else [], [ref, *models], sources, tick)


def _verify(
    runs: Sequence[AgentRun], refs: Sequence[VersionRef], sources: Sources, tick: Tick
) -> Verification:
    num = len(runs) + len(refs)
    verified: dict[str, RunVerification | None] = {}
    for run in runs:
        verified[run.id] = verification_of(run, sources)
        tick(len(verified), num)
    versions: list[VersionVerification] = []
    contradictions: list[str] = []
    for done, ref in enumerate(refs, len(runs)):
        stored = sources.registry.stored(ref)
        part = share_of(tick, done / num, (done + 1) / num)
        versions.append(verify_version(stored, sources.registry, sources.step_keys, part))
        contradictions += (f"{ref}: {each}" for each in _contradictions(stored, sources))
    return Verification(
        runs=verified,
        versions=tuple(versions),
        problems=(
            *(f"run {name}: {each}" for name in verified for each in _problems(verified[name])),
            *(each for version in versions for each in version.problems),
            *contradictions,
        ),
    )


def _problems(run: RunVerification | None) -> tuple[str, ...]:
    return run.problems if run else ()


def _contradictions(stored: StoredVersion, sources: Sources) -> Iterator[str]:
    """Where an agent's version is not what the ledger says of its run."""
    try:
        what = read_record(stored.record or "")
    except EvidenceError:
        return
    if isinstance(what, Agent):
        run = _run_if_there(what.run, sources)
        if run is None:
            yield f"the ledger has no run {what.run}"
        else:
            yield from breaks_of_run(what, run)
        edge = edge_to(stored.version.ref.name, what, sources)
        is_older = what.edge is None and edge is not None and edge.reasons == (UNTOLD,)
        if edge and not is_older:
            yield from edge.reasons


def _run_if_there(run: str, sources: Sources) -> AgentRun | None:
    try:
        return sources.ledger.run(run)
    except NotFound:
        return None

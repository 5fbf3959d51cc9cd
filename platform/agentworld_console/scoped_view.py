"""The part of the library that one caller may see.

Another tenant's records look as if they did not exist.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from agentworld.access import Caller
from agentworld.audit.checks.edges import EdgeAudit, edge_to
from agentworld.audit.checks.run import RunVerification, verification_of
from agentworld.audit.questions.agents import problems_in_use
from agentworld.audit.questions.revalidation import AgentsInUse
from agentworld.audit.read.sources import Sources, manifest_of, resolve_name
from agentworld.errors import InputError, NotFound
from agentworld.ledger.pages import ListedFork, ListedSimulator
from agentworld.ledger.runs import ListedRun
from agentworld.lineage.base import Agent, RegisteredAgent, Version, VersionRef
from agentworld.records.base import Digest
from agentworld.records.episode import Episode
from agentworld.records.garbled import reading
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.alias import AliasChange
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from agentworld_console.formatting import brief
from agentworld_console.grade import to_disputed
from agentworld_console.library import Library

MOST_AGENTS = 1_000
"""The number of the newest agents that a list searches."""
MOST_SIMULATORS = 10_000
"""The most simulators whose manifests a page may read."""
_LONG_LOG = 5_000
"""The record of a run with more log entries is checked only on request."""


class Record(NamedTuple):
    """The state of a run's record."""

    checked: bool
    verification: RunVerification | None
    """Null if nothing was signed, or if it has not been checked yet."""


class ScopedView:
    """Raises AccessError for a caller without any right to read."""

    def __init__(self, library: Library, caller: Caller) -> None:
        caller.check("agent", "auditor")
        self.library = library
        self.caller = caller
        self._pages = library.ledger.pages
        self._pins = SimulatorStore(library.store)

    @cached_property
    def sources(self) -> Sources:
        """The sources of an audit, opened once for a page."""
        return self.library.sources()

    @cached_property
    def agents_in_use(self) -> AgentsInUse:
        """All agents in use, read once for a page."""
        return AgentsInUse.read(self.sources.ledger, self.sources.evidence, self.library.store)

    @property
    def is_whole(self) -> bool:
        """Whether the caller sees all tenants."""
        return "auditor" in self.caller.roles and self.caller.run is None

    @property
    def tenant(self) -> str | None:
        """The tenant whose runs are visible; null for all."""
        return None if self.is_whole else self.caller.tenant

    def run(self, name: str) -> ListedRun:
        """A visible run; raises NotFound."""
        self.check_run(name)
        (run,) = self._pages.runs(1, id=name)
        return run

    def find_run(self, name: str) -> ListedRun | None:
        """The run of a visible agent; null if it is missing."""
        return next(iter(self._pages.runs(1, id=name)), None)

    def check_run(self, name: str) -> None:
        """Raises NotFound for a run that is not visible."""
        self._check_owner(name, _absent("run", name))

    def runs(
        self,
        limit: int,
        after: str = "",
        *,
        only_open: bool = False,
        simulators: Collection[Digest] | None = None,
    ) -> list[ListedRun]:
        """The newest visible runs of these simulators, or of all."""
        return self._pages.runs(
            limit,
            after,
            only_open=only_open,
            simulators=simulators,
            tenant=self.tenant,
            id=self.caller.run,
        )

    def is_long(self, run: ListedRun) -> bool:
        """Whether its record is checked only on request."""
        return run.log_length > _LONG_LOG

    def record(self, run: ListedRun, *, force: bool = False) -> Record:
        """The state of a run's record, if it is short or `force` is set."""
        if self.is_long(run) and not force:
            return Record(checked=False, verification=None)
        return Record(checked=True, verification=verification_of(run.id, self.sources))

    def episode(self, name: str) -> Episode:
        """A visible episode; raises NotFound, and EvidenceError if it is garbled."""
        self.check_episode(name)
        with reading(f"episode {name}"):
            return self.library.ledger.episode(name)

    def check_episode(self, name: str) -> str:
        """The run of a visible episode; raises NotFound."""
        try:
            run = self.library.ledger.run_of(name)
        except NotFound:
            raise _absent("episode", name) from None
        self._check_owner(run, _absent("episode", name))
        return run

    def forks(self, episode: str, limit: int, after: int) -> list[ListedFork]:
        """The forks and replays of an episode, in the order of opening."""
        return self._pages.forks(episode, limit, after, tenant=self.tenant, run=self.caller.run)

    def agent(self, ref: VersionRef) -> Agent:
        """A visible agent; raises NotFound."""
        try:
            agent = self.library.registry.agent(ref)
        except InputError:  # the error names existing versions, possibly another tenant's
            raise _absent("agent", str(ref)) from None
        if not self.is_whole:
            self._check_owner(agent.run, _absent("agent", str(ref)))
        return agent

    def agents(self, limit: int = MOST_AGENTS) -> list[Version]:
        """The visible agents among the newest MOST_AGENTS registered ones, the newest first."""
        if self.is_whole:
            return self.library.registry.agents(limit)
        versions = self.library.registry.agents(MOST_AGENTS)
        own = self._own(version.tags["run"] for version in versions)
        return [version for version in versions if version.tags["run"] in own][:limit]

    def in_use(self) -> list[AliasChange]:
        """The aliases of visible agents."""
        uses = sorted(self.agents_in_use.uses, key=attrgetter("alias"))
        own = None if self.is_whole else self._own(use.run for use in uses)
        return [use for use in uses if own is None or use.run in own]

    def problems_in_use(self, *, force: bool) -> list[str] | None:
        """Differences of the agents in use from the signed record or the registry.

        Null if they were not checked: all agents are compared, and if there are many, only with
        `force`. For callers who see all tenants.
        """
        sources = self.sources
        if not (self.is_whole and sources.evidence):
            return []
        if not force and len(self.library.registry.agents(MOST_AGENTS)) == MOST_AGENTS:
            return None
        return list(problems_in_use(sources))

    def _own(self, runs: Iterable[str]) -> set[str]:
        """The visible ones of these runs."""
        tenants = self._pages.tenants_of(runs)
        own = (self.caller.run,) if self.caller.run else tenants
        return {run for run in own if tenants.get(run) == self.caller.tenant}

    def agents_of(self, runs: Sequence[ListedRun]) -> dict[str, list[RegisteredAgent]]:
        """The agents of each of these visible runs."""
        no_agents = {run.id: list[RegisteredAgent]() for run in runs}
        return no_agents | self.agents_by_run({run.id for run in runs if run.final_weights})

    def agents_by_run(self, runs: Collection[str]) -> dict[str, list[RegisteredAgent]]:
        """The agents of visible closed runs.

        A registry query for one run takes as long as a list of hundreds of agents, so only old runs
        are queried one by one.
        """
        versions = {run: list[Version]() for run in runs}
        newest = self.library.registry.agents(MOST_AGENTS) if len(runs) > 1 else None
        for version in newest or ():
            if version.tags["run"] in versions:
                versions[version.tags["run"]].append(version)
        if newest is None or len(newest) == MOST_AGENTS:
            list_versions = self.library.registry.versions
            versions |= {
                run: list_versions(kind="agent", run=run) for run in runs if not versions[run]
            }
        tagged = {run: map(RegisteredAgent.from_tags, own) for run, own in versions.items()}
        return {run: [agent for agent in agents if agent] for run, agents in tagged.items()}

    def edge_of(self, agent: RegisteredAgent) -> EdgeAudit:
        """The grade of an agent's edge, from the signed statements."""
        audit = edge_to(agent.ref.name, agent, self.sources)
        return audit or to_disputed(f"nothing of run {agent.run} is signed")

    def simulators(self, limit: int, after: str = "", *, start: str = "") -> list[ListedSimulator]:
        """The simulators with runs, the one with the newest run first."""
        if self.caller.run:
            served = self.library.ledger.owner(self.caller.run).simulator
            simulator = ListedSimulator(served, 1, self.caller.run)
            return [simulator] if served.startswith(start) and not after else []
        return self._pages.simulators(limit, after, tenant=self.tenant, start=start)

    def unused_simulators(self) -> list[Digest]:
        """The simulators without runs; for callers who see all tenants."""
        if not self.is_whole:
            return []
        pinned = self._pins.digests()
        served = {simulator.simulator for simulator in self.simulators(len(pinned) + MOST_AGENTS)}
        return [digest for digest in pinned if digest not in served]

    def find_simulators(self, name: str) -> list[Digest]:
        """The simulators of an alias, a digest, or the start of a digest."""
        start = resolve_name(name, self.library.ledger.aliases)
        whole = start if start.startswith("sha256:") else f"sha256:{start}"
        if self.pinned(whole):
            return [whole]
        served = [simulator.simulator for simulator in self.simulators(MOST_AGENTS, start=whole)]
        unused = (digest for digest in self.unused_simulators() if digest.startswith(whole))
        return [*served, *unused]

    def manifests(self) -> dict[Digest, SimulatorManifest]:
        """The manifests of the visible simulators of this store."""
        pinned = self._pins.digests()
        if not self.is_whole:
            served = {simulator.simulator for simulator in self.simulators(MOST_SIMULATORS)}
            pinned = [digest for digest in pinned if digest in served]
        manifests = ((digest, self.manifest(digest)) for digest in pinned)
        return {digest: manifest for digest, manifest in manifests if manifest}

    @cached_property
    def weights(self) -> set[Digest]:
        """The artifacts of the visible simulators' world models."""
        return {manifest.artifact for manifest in self.manifests().values() if manifest.artifact}

    def manifest(self, simulator: Digest) -> SimulatorManifest | None:
        """The manifest, which every caller may read by its digest; null if the store has none."""
        return manifest_of(simulator, self.library.store)

    def pinned(self, simulator: Digest) -> PinnedSimulator | None:
        """The pinned simulator of a complete digest."""
        if simulator not in self._pins.digests():
            return None
        return self._pins.find(simulator)

    def alias_changes(self) -> list[AliasChange]:
        """The changes of all simulators' aliases, and who made them; for who sees all tenants."""
        if not self.is_whole:
            return []
        return self.library.ledger.aliases.readable_history("simulator").changes

    def name_of(self, simulator: Digest) -> str:
        """Its first alias, otherwise a short digest."""
        return next(iter(self.aliases.get(simulator, ())), brief(simulator))

    @cached_property
    def aliases(self) -> dict[Digest, list[str]]:
        """The current aliases of each simulator, read once for a page."""
        changes, garbled = self.library.ledger.aliases.readable_history("simulator")
        last = {change.alias: change for change in changes}
        names: dict[Digest, list[str]] = {}
        for name, change in sorted(last.items()):
            if not change.ended and name not in garbled:  # garbled: its target is unknown
                names.setdefault(change.simulator, []).append(name)
        return names

    def _check_owner(self, name: str, error: NotFound) -> None:
        try:
            owner = self.library.ledger.owner(name)
        except NotFound:
            raise error from None
        if self.caller.run not in (None, name) or self.tenant not in (None, owner.tenant):
            raise error


def _absent(noun: str, name: str) -> NotFound:
    return NotFound(f"there is no {noun} {name}; search for another")

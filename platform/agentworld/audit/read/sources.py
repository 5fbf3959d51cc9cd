"""The sources of an audit: the registry, the ledger, and the store of finished steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from agentworld.audit.read.evidence import Evidence, as_of
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.logs import Logs
from agentworld.lineage.base import (
    Agent,
    RegisteredAgent,
    Registry,
    Version,
    VersionRef,
    WorldModel,
)
from agentworld.records.base import Digest
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld.records.garbled import ReadResult, reading
from agentworld.records.log import Fields
from agentworld.records.run import AgentRun
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.signing.keys import TrustedKeys
from agentworld.signing.traffic import TrafficCount
from agentworld.storage.simulators import SimulatorStore

_Content = TypeVar("_Content")


class Sources(NamedTuple):
    """The sources of an audit."""

    registry: Registry
    ledger: Ledger
    store: Path
    evidence: Evidence | None = None
    """Null if the store has no keys, so nothing in it is signed."""
    step_keys: TrustedKeys = {}
    """The step keys, which sign registrations."""
    at: datetime | None = None
    """The time asked about; null is now. `as_of` sets it."""

    def as_of(self, at: datetime | None) -> "Sources":
        """The same sources as of a time: later records are left out. Null is now."""
        return self._replace(at=at, evidence=self.evidence and self.evidence._replace(at=at))

    @property
    def moment(self) -> str | None:
        """The time in an answer's format."""
        return self.at.isoformat() if self.at else None

    def versions(self, **tags: str) -> list[Version]:
        """All versions with these values of tags, in the order of names and versions."""
        return as_of(self.registry.versions(**tags), self.at)

    def world_models_with(self, artifact: Digest) -> list[Version]:
        """The world models with these weights as a stage, first those with them as their
        artifact.
        """
        if versions := self.versions(kind="world-model", artifact=artifact):
            return versions
        tags = [f"{stage}.artifact" for stage in WORLD_STAGES]
        return [
            version
            for version in self.versions(kind="world-model")
            if artifact in map(version.tags.get, tags)
        ]

    def check_registered(self, ref: VersionRef) -> None:
        """Raises NotFound for a version that is not registered, or was registered later."""
        if not as_of([self.registry.version(ref)], self.at):
            raise NotFound(f"{ref} was not registered by {self.moment}; name a later time")

    def for_many(self) -> "Sources":
        """The same sources with a cache of declarations, for one audit of many subjects."""
        evidence = self.evidence and self.evidence.for_many(self.ledger.attestations)
        return self._replace(evidence=evidence)

    def agent(self, ref: VersionRef) -> Agent:
        """A registered agent; raises NotFound, also if it was registered later."""
        agent = self.registry.agent(ref)
        if self.at is not None:
            self.check_registered(ref)
        return agent

    def run_names(self) -> list[str]:
        """The names of all runs, also of unreadable ones."""
        return open_runs(self.ledger.run_names(), self.ledger.logs, self.at)

    def runs(self) -> list[AgentRun]:
        """All runs as of the time asked about."""
        return self._runs_as_of(self.ledger.runs())

    def run(self, run: str) -> AgentRun:
        """A run as of the time asked about; raises NotFound, also if it was opened later."""
        past_run = next(iter(self._runs_as_of([self.ledger.run(run)])), None)
        if past_run is None:
            raise NotFound(f"run {run} was not open by {self.moment}; name a later time")
        return past_run

    def runs_of_simulator(self, simulator: Digest) -> ReadResult[AgentRun]:
        """The runs that a simulator served, as of the time asked about."""
        runs, problems = self.ledger.readable_runs(simulator=simulator)
        return ReadResult(self._runs_as_of(runs), problems)

    def runs_for_agent_weights(self, weights: Digest) -> list[AgentRun]:
        """The runs that had ended with these weights; `audit verify` reports garbled ones."""
        runs = self._runs_as_of(self.ledger.readable_runs(final_weights=weights).records)
        return [run for run in runs if run.final_weights == weights]

    def agents_of(self, run: AgentRun) -> list[VersionRef]:
        """The registered agents of a run."""
        refs = self.registry.agents_of(run.id) if run.final_weights else []
        return self._registered(refs)

    def agents_in(self, simulator: Digest) -> list[RegisteredAgent]:
        """The agents whose trainers named this simulator, by their tags."""
        versions = self.versions(simulator=simulator, kind="agent")
        return [agent for agent in map(RegisteredAgent.from_tags, versions) if agent]

    def world_models_of(self, manifest: SimulatorManifest | None) -> list[VersionRef]:
        """The registered versions whose weights a simulator serves, first the signed ones; none for
        an endpoint.
        """
        refs = self._registered(world_models_of(manifest, self.registry))
        if len(refs) < 2:  # the usual case needs no query
            return refs
        return sorted(refs, key=lambda ref: not self.is_signed(ref))

    def world_model_served(self, manifest: SimulatorManifest | None) -> VersionRef | None:
        """The version whose weights a simulator serves: the first signed one, without reading its
        record, or else the first readable one.
        """
        refs = self._registered(world_models_of(manifest, self.registry))
        signed = next(filter(self.is_signed, refs), None)
        return signed or self.first_world_model(refs)[0]

    def first_world_model(
        self, refs: Iterable[VersionRef]
    ) -> tuple[VersionRef | None, WorldModel | None]:
        """The first version that is valid, with its record."""
        return next(self.read_each(refs, self.registry.world_model), (None, None))

    def read_each(
        self, refs: Iterable[VersionRef], read: Callable[[VersionRef], _Content]
    ) -> Iterator[tuple[VersionRef, _Content]]:
        """Reads versions, leaving out invalid ones: unsigned and unreadable entries of other
        programs. `audit verify` reports those.
        """
        for ref in refs:
            try:
                with reading(str(ref)):
                    content = read(ref)
            except (EvidenceError, NotFound):
                if self.is_signed(ref):
                    raise
            else:
                yield ref, content

    def is_signed(self, ref: VersionRef) -> bool:
        """Whether the ledger has a signed registration of this version."""
        return bool(self.ledger.attestations.find(RegisteredVersion.kind, subject=str(ref)))

    def resolve(self, name: str) -> str:
        """Resolves an alias, or else the start of a digest."""
        if self.at is None or name.startswith("sha256:"):
            return resolve_name(name, self.ledger.aliases)
        moves = self.ledger.aliases.history(name, "simulator")
        meanings = [move.meaning for move in as_of(moves, self.at)]
        return meanings[-1].simulator if meanings and meanings[-1] else name

    def _registered(self, refs: list[VersionRef]) -> list[VersionRef]:
        return as_of(refs, self.at, lambda ref: self.registry.version(ref).at)

    def _runs_as_of(self, runs: list[AgentRun]) -> list[AgentRun]:
        if self.at is None:
            return runs
        at = self.at
        return [past_run for run in runs if (past_run := _run_as_of(run, self.ledger.logs, at))]


def open_runs(names: Sequence[str], logs: Logs, at: datetime | None) -> list[str]:
    """The runs that were open by a time, also unreadable ones."""
    return as_of(names, at, lambda name: logs.first_entry(name)["at"])


def _run_as_of(run: AgentRun, logs: Logs, at: datetime) -> AgentRun | None:
    """A run as of a time; null if it was opened later. An entry without a time counts as always
    there.
    """
    entries = [entry.readable_fields for entry in logs.entries(run.id)]
    before = as_of(entries, at, lambda fields: fields["at"])
    if entries and not before:
        return None
    return run if len(before) == len(entries) else _rebuild_run(run, before)


def _rebuild_run(run: AgentRun, entries: Sequence[Fields]) -> AgentRun:
    """Builds a run from its log entries up to then."""
    count = TrafficCount()
    for fields in entries:
        count.add(fields)
    is_closed = any(fields.get("kind") == "run-closed" for fields in entries)
    changes = {
        "closing": run.closing if is_closed else None,
        "num_episodes": count.total.num_episodes,
        "num_steps": count.total.num_steps,
        "log_length": len(entries),
    }
    return run.model_copy(update=changes)


def manifest_of(simulator: Digest, store: Path) -> SimulatorManifest | None:
    """A simulator's manifest, if the store has it; its digest identifies it."""
    try:
        return SimulatorStore(store).find(simulator).manifest
    except (InputError, EvidenceError):
        return None


def world_models_of(manifest: SimulatorManifest | None, registry: Registry) -> list[VersionRef]:
    """The registered versions whose weights a simulator serves; none for an endpoint."""
    return registry.world_models_of(manifest.artifact) if manifest and manifest.artifact else []


def find_simulator(name: str, sources: Sources) -> Digest:
    """The simulator of an alias or of the start of a digest; raises NotFound, or InputError."""
    start = sources.resolve(name)
    # A ledger on a server may have simulators that were pinned in another store.
    served, garbled = sources.ledger.readable_runs(simulator=start)
    if served or garbled:
        return start
    return SimulatorStore(sources.store).find(start).digest


def resolve_name(name: str, aliases: Aliases) -> str:
    """Resolves an alias to its current target; other text is the start of a digest."""
    try:
        return aliases.resolve(name)
    except NotFound:
        return name

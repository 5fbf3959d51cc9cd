"""Where an audit reads: the registry, the ledger, and the store of finished steps."""

from pathlib import Path
from typing import NamedTuple, Protocol

from agentworld.audit.edges import EdgeAudit, audit_edge
from agentworld.audit.evidence import Evidence
from agentworld.audit.signed_log import RunRecord
from agentworld.audit.verify import RunVerification, verify_run
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.lineage.base import Agent, Registry, VersionRef
from agentworld.records.base import Digest
from agentworld.records.run import AgentRun
from agentworld.records.simulator import SimulatorManifest
from agentworld.storage.simulators import SimulatorStore


class Runs(RunRecord, Protocol):
    """What an audit asks of the ledger."""

    @property
    def aliases(self) -> Aliases:
        """People's names for simulators."""
        ...

    @property
    def attestations(self) -> Attestations:
        """What was signed beside the logs of runs."""
        ...

    def runs_of_simulator(self, simulator: Digest) -> list[AgentRun]:
        """The runs that a simulator served."""
        ...


class Sources(NamedTuple):
    """All that an audit knows."""

    registry: Registry
    ledger: Runs
    store: Path
    evidence: Evidence | None = None
    """Null where the store has no keys, so that nothing in it was signed."""


def verification_of(run: AgentRun, sources: Sources) -> RunVerification | None:
    """Whether a run's record is the one that was signed; null where nothing was."""
    if sources.evidence is None:
        return None
    try:
        return verify_run(run.id, sources.ledger, sources.evidence)
    except EvidenceError as error:
        return RunVerification.of_garbled(run, str(error))


def edge_to(name: str, agent: Agent, sources: Sources) -> EdgeAudit | None:
    """How far it is proven which simulator made an agent; null where nothing was signed."""
    if sources.evidence is None:
        return None
    return audit_edge(name, agent, sources.ledger.attestations, sources.evidence)


def manifest_of(simulator: Digest, store: Path) -> SimulatorManifest | None:
    """A simulator's manifest, if the store has it; its own bytes prove that it is the one."""
    try:
        return SimulatorStore(store).find(simulator).manifest
    except (InputError, EvidenceError):
        return None


def world_models_of(manifest: SimulatorManifest | None, registry: Registry) -> list[VersionRef]:
    """The registered versions whose weights a simulator serves; an endpoint serves none."""
    return registry.world_models_of(manifest.artifact) if manifest and manifest.artifact else []


def find_simulator(name: str, sources: Sources) -> Digest:
    """The simulator of an alias or of the start of a digest; raises NotFound, or InputError."""
    start = named(name, sources.ledger.aliases)
    # A ledger on a server knows simulators that were pinned in another store.
    if sources.ledger.runs_of_simulator(start):
        return start
    return SimulatorStore(sources.store).find(start).digest


def named(name: str, aliases: Aliases) -> str:
    """What an alias means now; what is no alias is taken for the start of a digest."""
    try:
        return aliases.resolve(name)
    except NotFound:
        return name

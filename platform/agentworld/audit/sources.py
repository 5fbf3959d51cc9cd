"""Where an audit reads: the registry, the ledger, and the store of finished steps."""

from pathlib import Path
from typing import NamedTuple, Protocol

from agentworld.audit.receipts import FinishedStep, finished_steps, step_that_made
from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import Registry
from agentworld.records.base import Digest
from agentworld.records.run import AgentRun
from agentworld.records.simulator import SimulatorManifest


class Runs(Protocol):
    """What an audit asks of the ledger."""

    def run(self, run: str) -> AgentRun:
        """A run with the number of its episodes and steps; raises NotFound."""
        ...

    def runs_of_simulator(self, simulator: Digest) -> list[AgentRun]:
        """The runs that a simulator served."""
        ...


class Sources(NamedTuple):
    """All that an audit knows."""

    registry: Registry
    ledger: Runs
    store: Path


def manifest_of(simulator: Digest, store: Path) -> SimulatorManifest | None:
    """A simulator's manifest, if the store has it; its own bytes prove that it is the one."""
    step = step_that_made(store, "simulate", simulator)
    manifest = SimulatorManifest.read(step.folder / "manifest.json") if step else None
    return manifest if manifest and manifest.digest == simulator else None


def find_simulator(start: str, sources: Sources) -> Digest:
    """The one simulator whose digest starts so; raises NotFound, or InputError for several."""
    # A ledger on a server knows simulators that were pinned in another store.
    if sources.ledger.runs_of_simulator(start):
        return start
    return _find(start, sources.store).receipt.output


def simulator_folder(start: str, store: Path) -> Path:
    """The folder of the one simulator whose digest starts so."""
    return _find(start, store).folder


def _find(start: str, store: Path) -> FinishedStep:
    start = start if start.startswith("sha256:") else f"sha256:{start}"
    known = {step.receipt.output: step for step in finished_steps(store, "simulate")}
    found = sorted(digest for digest in known if digest.startswith(start))
    if not found:
        there = ", ".join(sorted(known)) or "none yet; run `agentworld demo`"
        raise NotFound(f"there is no simulator {start} in {store}; simulators are {there}")
    if len(found) > 1:
        raise InputError(f"{start} is the start of {', '.join(found)}; write more of it")
    return known[found[0]]

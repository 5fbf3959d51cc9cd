"""Opens and closes runs: at the deployed service, or with the service's code in this process.

In this process no engine is started and nothing listens, because neither operation needs a model.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

from agentworld.client.simulator import SimulatorClient
from agentworld.engine.base import CompletionRequest
from agentworld.errors import EngineError
from agentworld.operations.ledger import open_ledger
from agentworld.operations.serving import deployed_service
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.runs import Runs
from agentworld.serving.setup import log_signer_of
from agentworld.serving.simulators.base import ConnectedSimulator
from agentworld.serving.simulators.connections import Simulators
from agentworld.serving.simulators.single import OneSimulator
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.stores import Stores


class RunBackend(Protocol):
    """Opens and closes runs; raises a typed error for a refusal."""

    async def open(self, opening: RunOpening, name: str) -> AgentRun:
        """Opens a run, once for each name."""
        ...

    async def get(self, run: str) -> AgentRun:
        """The current state of a run."""
        ...

    async def close(self, run: str, closing: RunClosing) -> AgentRun:
        """Closes a run and signs its log."""
        ...

    async def attest(self, run: str, claim: Claim) -> SignedEdge:
        """Signs which simulator made an agent, with a grade."""
        ...


@asynccontextmanager
async def run_backend(simulator: PinnedSimulator, store: Path) -> AsyncIterator[RunBackend]:
    """The backend for runs with a simulator of this store."""
    client = deployed_service(simulator.digest)
    if client:
        try:
            yield _ServiceBackend(client)
        finally:
            await client.close()
        return
    with closing(open_ledger(store)) as ledger:
        episode_store = EpisodeStore(ledger, simulator=simulator.digest)
        connected = ConnectedSimulator(simulator.manifest, _NotStarted())
        simulators = Simulators(episode_store, OneSimulator(connected, ledger.aliases))
        log_signer = log_signer_of(Stores.of(store), ledger, simulator.digest)
        try:
            yield Runs(episode_store, simulators, log_signer)
        finally:
            await episode_store.close()


class _ServiceBackend(NamedTuple):
    """A service, through its client."""

    client: SimulatorClient

    async def open(self, opening: RunOpening, name: str) -> AgentRun:
        return await self.client.open_run(opening, name)

    async def get(self, run: str) -> AgentRun:
        return await self.client.resume_run(run)

    async def close(self, run: str, closing: RunClosing) -> AgentRun:
        await self.client.resume_run(run)
        return await self.client.close_run(closing.final_weights, closing.signature)

    async def attest(self, run: str, claim: Claim) -> SignedEdge:
        await self.client.resume_run(run)
        return await self.client.attest(claim)


class _NotStarted:
    """The engine of a local backend, which is never called."""

    async def complete(self, _request: CompletionRequest) -> NoReturn:
        raise EngineError("no engine was started where runs are opened", retryable=False)

    async def close(self) -> None:
        """Does nothing."""

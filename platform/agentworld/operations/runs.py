"""Where runs are opened and closed: at the service that is deployed, or by its own code here.

Here no engine is started and nothing listens, for neither asks anything of a model.
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
    """Raises a typed error for what a service refuses."""

    async def open(self, opening: RunOpening, name: str) -> AgentRun:
        """Begins a run, once under a name."""
        ...

    async def get(self, run: str) -> AgentRun:
        """A run as it is now."""
        ...

    async def close(self, run: str, closing: RunClosing) -> AgentRun:
        """Ends a run and signs its log."""
        ...

    async def attest(self, run: str, claim: Claim) -> SignedEdge:
        """Which simulator made an agent, graded and signed."""
        ...


@asynccontextmanager
async def run_backend(simulator: PinnedSimulator, store: Path) -> AsyncIterator[RunBackend]:
    """Where runs are opened in a simulator of this store."""
    client = deployed_service(simulator.digest)
    if client:
        try:
            yield _ServiceBackend(client)
        finally:
            await client.close()
        return
    with closing(open_ledger(store)) as ledger:
        episode_store = EpisodeStore(ledger, simulator=simulator.digest)
        only = ConnectedSimulator(simulator.manifest, _NotStarted())
        simulators = Simulators(episode_store, OneSimulator(only, ledger.aliases))
        log_signer = log_signer_of(Stores.of(store), ledger, simulator.digest)
        try:
            yield Runs(episode_store, simulators, log_signer)
        finally:
            await episode_store.close()


class _ServiceBackend(NamedTuple):
    """A service, as its clients reach it."""

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
    """The engine of a local backend, which nothing asks."""

    async def complete(self, _request: CompletionRequest) -> NoReturn:
        raise EngineError("no engine was started where runs are opened", retryable=False)

    async def close(self) -> None:
        """There is nothing to let go of."""

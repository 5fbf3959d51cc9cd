"""Runs of agents: opened with one simulator, closed with their weights, and signed."""

import asyncio
from contextlib import suppress

from agentworld.errors import Conflict, NotFound
from agentworld.records.episode import new_name
from agentworld.records.run import LOCAL_TENANT, AgentRun, RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.records.step_statement import StepStatement
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.simulators.base import SimulatorRequest
from agentworld.serving.simulators.connections import Simulators
from agentworld.statements.log_checkpoints import LogCheckpointSigner


class Runs:
    """The runs of all simulators of a process."""

    def __init__(
        self, episode_store: EpisodeStore, simulators: Simulators, log_signer: LogCheckpointSigner
    ) -> None:
        self._episode_store = episode_store
        self._ledger = episode_store.ledger
        self._simulators = simulators
        self._log_signer = log_signer
        self.statement_signer = log_signer.statement_signer
        """Signs statements beside the logs."""

    async def open(
        self, opening: RunOpening, name: str | None = None, tenant: str = LOCAL_TENANT
    ) -> AgentRun:
        """Opens a run with the requested simulator, once for each name.

        An alias is resolved here only: the record has the digest.
        """
        run = await self._find_existing(opening, name, tenant) if name else None
        if run:
            return run
        name = name or new_name()  # needed to choose a canary
        request = SimulatorRequest(opening.simulator or "", name, tenant)
        simulator = await self._simulators.resolve(request)
        await self._simulators.find(simulator)  # a simulator that cannot be served opens no run
        if opening.simulator:
            opening = opening.model_copy(update={"simulator": simulator})
        return await asyncio.to_thread(self._ledger.open_run, opening, simulator, name, tenant)

    async def get(self, run: str) -> AgentRun:
        """A run; raises Conflict for a run that this process does not serve."""
        record = await asyncio.to_thread(self._ledger.run, run)
        self._simulators.check(record.simulator)
        return record

    async def close(self, run: str, closing: RunClosing) -> AgentRun:
        """Closes a run with its open episodes and signs its log; repeating it changes nothing."""
        record = await self.get(run)
        self._log_signer.check_closing(record, closing)
        num_open = await asyncio.to_thread(self._ledger.counts.num_open_episodes, run=run)
        closed_run = await asyncio.to_thread(self._ledger.close_run, run, closing)
        self._episode_store.metrics.of(record.simulator).end("closed", num_open)
        self._episode_store.drop_run(run)
        await asyncio.to_thread(self._log_signer.seal, run)
        return closed_run

    async def attest(self, run: str, claim: Claim) -> SignedEdge:
        """Signs and stores which simulator made an agent, as far as it is known."""
        record = await self.get(run)
        if record.closing:  # the process that closed it may have been killed before it signed
            await asyncio.to_thread(self._log_signer.seal_end, run)
        return await asyncio.to_thread(self._log_signer.statement_signer.edge, record, claim)

    async def file(self, statement: StepStatement) -> str:
        """Stores a step's signed statement; returns its name."""
        return await asyncio.to_thread(self.statement_signer.file, statement)

    async def seal(self) -> int:
        """Signs the logs that grew, and copies declarations; returns the number of logs."""
        try:
            return await asyncio.to_thread(self._log_signer.seal_all)
        finally:  # a forked log does not prevent the copies
            await asyncio.to_thread(self.statement_signer.copy_missing)

    async def _find_existing(self, opening: RunOpening, name: str, tenant: str) -> AgentRun | None:
        """The run that was opened with this request and name, whatever its alias means now."""
        with suppress(NotFound, Conflict):  # any other record of this name is not revealed
            run = await self.get(name)
            if _is_digest(opening.simulator) and opening.simulator != run.simulator:
                return None
            resolved_opening = opening.model_copy(update={"simulator": run.opening.simulator})
            if (run.opening, run.tenant) == (resolved_opening, tenant):
                return run
        return None


def _is_digest(name: str | None) -> bool:
    return name is not None and name.startswith("sha256:")

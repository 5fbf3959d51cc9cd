"""One pinned simulator at work: it asks the engine, judges, and answers what is durable.

It keeps no episode in memory, so that any replica, and the one after a crash, can go on.
"""

import asyncio
from collections.abc import Sequence

from agentworld.engine.base import Completion, Engine
from agentworld.errors import Conflict, EngineError
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.message import Message
from agentworld.records.run import (
    AgentRun,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    RunOpening,
    StepResult,
)
from agentworld.records.simulator import SimulatorManifest
from agentworld.scoring.success import check_rule
from agentworld.simulate import session
from agentworld.simulate.writer import StepWriter


class SimulatorService:
    """What the endpoints call."""

    def __init__(self, manifest: SimulatorManifest, engine: Engine, ledger: Ledger) -> None:
        self.manifest = manifest
        self.digest: Digest = manifest.digest
        self._engine = engine
        self._ledger = ledger
        self._writer = StepWriter(ledger.append_steps)

    async def open_run(self, opening: RunOpening) -> AgentRun:
        """Begins a run with this simulator."""
        return await asyncio.to_thread(self._ledger.open_run, opening, self.digest)

    async def run(self, run: str) -> AgentRun:
        """A run of this simulator."""
        found = await asyncio.to_thread(self._ledger.run, run)
        self._check_ours(found.simulator)
        return found

    async def close_run(self, run: str, final_weights: Digest) -> AgentRun:
        """Ends a run; the same weights again change nothing."""
        await self.run(run)
        return await asyncio.to_thread(self._ledger.close_run, run, final_weights)

    async def reset(self, opening: EpisodeOpening) -> ResetResult:
        """Begins an episode of an open run."""
        if opening.task:
            check_rule(opening.task.success)
        episode = await asyncio.to_thread(self._ledger.open_episode, opening, self.digest)
        return session.opened(episode)

    async def episode(self, episode: str) -> Episode:
        """An episode with its steps."""
        found = await asyncio.to_thread(self._ledger.episode, episode)
        self._check_ours(found.simulator)
        return found

    async def step(self, name: str, request: session.Request) -> StepResult:
        """Answers a step once; a step that fails is not recorded and may be tried again."""
        episode = await self.episode(name)
        step = session.recorded(episode, request)
        if step is None:
            shown = await self._observe(episode, request.action)
            step = session.next_step(episode, request.action, shown)
            try:
                await self._writer.write(step)
            except Conflict:
                step = await self._answered_meanwhile(name, request)
        return session.answered(episode, step)

    async def _observe(self, episode: Episode, action: str) -> str:
        """What the engine says that `action` shows, asked as often as the manifest allows."""
        asked = session.messages(self.manifest, episode, action)
        seed = session.seed(self.manifest, episode)
        retry = self.manifest.retry
        for _ in range(retry.attempts - 1):
            try:
                return await self._ask(asked, seed)
            except EngineError as error:
                if not error.retryable or error.kind not in retry.retry_on:
                    raise
        return await self._ask(asked, seed)

    async def _ask(self, asked: Sequence[Message], seed: int | None) -> str:
        said: Completion = await self._engine.complete(asked, self.manifest.sampling, seed)
        return session.observation(self.manifest, said)

    async def _answered_meanwhile(self, name: str, request: session.Request) -> EpisodeStep:
        """The same step, asked for twice at once, has one answer: the one that was written."""
        step = session.recorded(await self.episode(name), request)
        if step is None:
            raise Conflict(f"the run of episode {name} is closed; open another one")
        return step

    def _check_ours(self, simulator: Digest) -> None:
        if simulator != self.digest:
            raise Conflict(
                f"this belongs to simulator {simulator} and is never answered by {self.digest}"
            )

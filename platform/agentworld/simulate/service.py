"""One pinned simulator at work: it asks the engine, judges, and answers what is durable.

Whatever it keeps in memory is in the ledger too, so that any replica, and the one after a
crash, can go on with any episode.
"""

import asyncio
import time
from contextlib import suppress

from agentworld.engine.base import Engine
from agentworld.errors import Conflict, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.writes import Closed, Opened, Taken, Write
from agentworld.records.base import Digest
from agentworld.records.episode import (
    CloseReason,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    Source,
    StepResult,
    new_name,
)
from agentworld.records.message import Message
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.scoring.success import check_rule
from agentworld.simulate import session
from agentworld.simulate.observing import Observer
from agentworld.simulate.open_episodes import OpenEpisode, OpenEpisodes
from agentworld.simulate.sealing import Sealer
from agentworld.simulate.session import Observed, Request
from agentworld.simulate.writer import Writer


class SimulatorService:
    """What the doors call."""

    def __init__(
        self,
        manifest: SimulatorManifest,
        engine: Engine,
        ledger: Ledger,
        sealer: Sealer,
        *,
        most_in_memory: int = 10_000,
    ) -> None:
        self.manifest = manifest
        self.digest: Digest = manifest.digest
        self._ledger = ledger
        self._sealer = sealer
        self._aliases = ledger.aliases
        self._observer = Observer(manifest, engine)
        self._writer = Writer(ledger.write)
        self._episodes = OpenEpisodes(most_in_memory)

    async def open_run(self, opening: RunOpening, name: str | None = None) -> AgentRun:
        """Begins a run with this simulator, once under a name.

        An alias is resolved here and never again: what is stored names the digest.
        """
        known = await self._opened(opening, name) if name else None
        if known:
            return known
        if opening.simulator:
            wanted = await asyncio.to_thread(self._aliases.resolve, opening.simulator)
            self._check_ours(wanted)
            opening = opening.model_copy(update={"simulator": wanted})
        return await asyncio.to_thread(self._ledger.open_run, opening, self.digest, name)

    async def run(self, run: str) -> AgentRun:
        """A run of this simulator."""
        found = await asyncio.to_thread(self._ledger.run, run)
        self._check_ours(found.simulator)
        return found

    async def close_run(self, run: str, closing: RunClosing) -> AgentRun:
        """Ends a run with its open episodes and signs its log; the same again changes nothing."""
        self._sealer.check_closing(await self.run(run), closing)
        closed = await asyncio.to_thread(self._ledger.close_run, run, closing)
        await asyncio.to_thread(self._sealer.seal, run)
        return closed

    async def reset(self, opening: EpisodeOpening, name: str | None = None) -> ResetResult:
        """Begins an episode of an open run, once under a name; without one it gets a new name."""
        if opening.task:
            check_rule(opening.task.success)
        session.check_seed(self.manifest, opening)
        episode, record = await self._begin(opening, name or new_name())
        try:
            await self._writer.write(Opened(episode))
        except Conflict:
            if not await self._has_begun(episode):
                raise
        else:
            self._keep(episode, record)
        return session.opened(episode)

    async def step(self, name: str, request: Request) -> StepResult:
        """Answers a step once; a step that fails is not recorded and may be tried again."""
        episode = self._episodes.get(name) or await self._load(name)
        while True:
            try:
                step = await self._answer(episode, request)
            except Conflict:
                known, episode = len(episode.steps), await self._load(name, anew=True)
                if len(episode.steps) == known:
                    raise
                # Another replica went on with it meanwhile, and may do so again.
            else:
                return session.answered(self.digest, episode.opening.run, step)

    async def close_episode(self, name: str, reason: CloseReason = "closed") -> None:
        """Ends an episode; one that is over stays as it is."""
        episode = await self.episode(name)
        while episode.closed is None:
            run, num_steps = episode.run, len(episode.steps)
            try:
                await self._writer.write(Closed(run, name, num_steps, episode.head, reason))
                break
            except Conflict:
                known, episode = episode, await self.episode(name)
                if episode == known:
                    raise
                # It went on meanwhile, or was closed by another replica.
        self._episodes.drop(name)

    async def expire(self, idle_seconds: float) -> int:
        """Ends the episodes of this simulator that stood still for so long; returns how many."""
        before = time.time() - idle_seconds
        idle = await asyncio.to_thread(self._ledger.idle_episodes, self.digest, before)
        for closed in idle:
            # One that went on meanwhile is not idle any more.
            with suppress(Conflict):
                await self._writer.write(closed)
            self._episodes.drop(closed.episode)
        return len(idle)

    async def seal(self) -> int:
        """Signs the logs that grew; returns how many."""
        return await asyncio.to_thread(self._sealer.seal_all)

    async def episode(self, name: str) -> Episode:
        """An episode with its steps."""
        found = await asyncio.to_thread(self._ledger.episode, name)
        self._check_ours(found.simulator)
        return found

    async def close(self) -> None:
        """Waits for what is being written, and signs it."""
        await self._writer.close()
        await self.seal()

    async def _answer(self, episode: OpenEpisode, request: Request) -> EpisodeStep:
        async with episode.lock:
            step = session.recorded(episode, request)
            return step or await self._take(episode, request)

    async def _take(self, episode: OpenEpisode, request: Request) -> EpisodeStep:
        observed = await self._observe(episode, request)
        step = session.next_step(episode, request, observed)
        await self._writer.write(*_writes(episode, step))
        episode.add(step, session.said(step))
        if episode.closed:
            self._episodes.drop(episode.id)
        return step

    async def _observe(self, episode: OpenEpisode, request: Request) -> Observed:
        if episode.opening.replay:
            return session.replayed(episode, request)
        asked = [*episode.history, Message(role="user", content=request.action)]
        seed = session.seed(self.manifest, episode.opening, request.number)
        return await self._observer.observe(asked, seed, episode.id)

    async def _load(self, name: str, *, anew: bool = False) -> OpenEpisode:
        episode = await self.episode(name)
        replay = episode.opened_with.replay
        record = await self._steps_of(replay) if replay else ()
        if anew:
            self._episodes.drop(name)
        return self._keep(episode, record)

    def _keep(self, episode: Episode, record: tuple[EpisodeStep, ...]) -> OpenEpisode:
        return self._episodes.keep(
            episode.id,
            lambda: OpenEpisode(episode, session.history(self.manifest, episode), record),
        )

    async def _steps_of(self, source: Source) -> tuple[EpisodeStep, ...]:
        return (await self.episode(source.episode)).steps[: source.step]

    async def _begin(
        self, opening: EpisodeOpening, name: str
    ) -> tuple[Episode, tuple[EpisodeStep, ...]]:
        """The new episode, and the record that it repeats."""
        at = opening.fork or opening.replay
        if at is None:
            return Episode.begun(name, self.digest, opening), ()
        source = await self.episode(at.episode)
        opening = session.continued(opening, source, at)
        record = source.steps[: at.step]
        begun = Episode.begun(name, self.digest, opening)
        return (begun, record) if opening.replay else (session.forked(begun, record), ())

    async def _has_begun(self, episode: Episode) -> bool:
        """Whether it is there already, with the same start."""
        try:
            return (await self.episode(episode.id)).first_head == episode.first_head
        except NotFound:
            return False

    async def _opened(self, opening: RunOpening, name: str) -> AgentRun | None:
        """The run that was opened so under this name, whatever its alias means by now."""
        with suppress(NotFound):
            run = await self.run(name)
            if run.opening == opening.model_copy(update={"simulator": run.opening.simulator}):
                return run
        return None

    def _check_ours(self, simulator: Digest) -> None:
        if simulator != self.digest:
            raise Conflict(
                f"this belongs to simulator {simulator} and is never answered by {self.digest}"
            )


def _writes(episode: OpenEpisode, step: EpisodeStep) -> list[Write]:
    """The step, and the end of the episode where it is the last one."""
    run, taken = episode.opening.run, Taken(episode.opening.run, step)
    if step.ending is None:
        return [taken]
    return [taken, Closed(run, episode.id, step.number, step.head, step.ending)]

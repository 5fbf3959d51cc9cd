"""One pinned simulator at work: it asks the engine, judges, and answers what is durable.

Whatever it keeps in memory is in the ledger too, so that any replica, and the one after a
crash, can go on with any episode.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from agentworld.domains.tools import check_tools
from agentworld.engine.base import Engine
from agentworld.engine.breaker import State
from agentworld.errors import Conflict, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.writes import Closed, Opened, Write
from agentworld.records.base import Digest
from agentworld.records.episode import (
    CloseReason,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    Source,
    new_name,
)
from agentworld.records.message import Message
from agentworld.records.run import LOCAL_TENANT, AgentRun, RunClosing, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.scoring.success import check_rule
from agentworld.simulate import session
from agentworld.simulate.metrics import Metrics, Timings
from agentworld.simulate.observing import Observer
from agentworld.simulate.open_episodes import OpenEpisode, OpenEpisodes
from agentworld.simulate.owners import Owners
from agentworld.simulate.sealing import Sealer
from agentworld.simulate.session import Observed, Request
from agentworld.simulate.writer import Writer, writes_of


class Answered(NamedTuple):
    """A step that was taken now, or is repeated."""

    step: EpisodeStep
    timings: Timings | None
    """Where it took how long; null where it is repeated."""


class SimulatorService:
    """What the doors call."""

    def __init__(
        self,
        manifest: SimulatorManifest,
        engine: Engine,
        ledger: Ledger,
        sealer: Sealer,
        *,
        states: Callable[[], Mapping[str, State]] = dict,
        most_in_memory: int = 10_000,
    ) -> None:
        """`states` tells of each replica of the engine whether it is asked."""
        self.manifest = manifest
        self.digest: Digest = manifest.digest
        self._ledger = ledger
        self._sealer = sealer
        num_open = partial(ledger.num_open_episodes_of, self.digest)
        self.metrics = Metrics(self.digest, open_episodes=num_open, states=states)
        self._aliases = ledger.aliases
        self._observer = Observer(manifest, engine)
        self._writer = Writer(ledger.write, self._count)
        self._episodes = OpenEpisodes(most_in_memory)
        self._unsettled: dict[str, asyncio.Future[None]] = {}
        """Steps on their way to the ledger that nobody waits for any more."""
        self.owners = Owners(ledger)

    async def open_run(
        self, opening: RunOpening, name: str | None = None, tenant: str = LOCAL_TENANT
    ) -> AgentRun:
        """Begins a run with this simulator, once under a name.

        An alias is resolved here and never again: what is stored names the digest.
        """
        known = await self._opened(opening, name, tenant) if name else None
        if known:
            return known
        if opening.simulator:
            wanted = await asyncio.to_thread(self._aliases.resolve, opening.simulator)
            self._check_ours(wanted)
            opening = opening.model_copy(update={"simulator": wanted})
        return await asyncio.to_thread(self._ledger.open_run, opening, self.digest, name, tenant)

    async def run(self, run: str) -> AgentRun:
        """A run of this simulator."""
        found = await asyncio.to_thread(self._ledger.run, run)
        self._check_ours(found.simulator)
        return found

    async def close_run(self, run: str, closing: RunClosing) -> AgentRun:
        """Ends a run with its open episodes and signs its log; the same again changes nothing."""
        self._sealer.check_closing(await self.run(run), closing)
        num_open = await asyncio.to_thread(self._ledger.num_open_episodes_in, run)
        closed = await asyncio.to_thread(self._ledger.close_run, run, closing)
        self.metrics.ended("closed", num_open)
        await asyncio.to_thread(self._sealer.seal, run)
        return closed

    async def reset(self, opening: EpisodeOpening, name: str | None = None) -> ResetResult:
        """Begins an episode of an open run, once under a name; without one it gets a new name."""
        if opening.task:
            check_rule(opening.task.success)
        if opening.tools:
            await asyncio.to_thread(check_tools, opening.tools)
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

    async def step(self, name: str, request: Request) -> Answered:
        """Answers a step once; a step that fails is not recorded and may be tried again."""
        episode = await self.known(name)
        while True:
            try:
                return await self._answer(episode, request)
            except Conflict:
                known, episode = len(episode.steps), await self._load(name, anew=True)
                if len(episode.steps) == known:
                    raise
                # Another replica went on with it meanwhile, and may do so again.

    async def run_of(self, episode: str) -> str:
        """Which run an episode is of; raises NotFound, and tells nothing else of it."""
        kept = self._episodes.get(episode)
        return kept.opening.run if kept else await self.owners.run_of(episode)

    def held(self, episode: str) -> OpenEpisode | None:
        """An episode that this replica goes on with, if it is one."""
        return self._episodes.get(episode)

    async def known(self, episode: str, *, anew: bool = False) -> OpenEpisode:
        """An episode as this replica goes on with it, or `anew` as the ledger has it."""
        held = None if anew else self._episodes.get(episode)
        return held or await self._load(episode, anew=anew)

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
        if unsettled := self._unsettled.get(name):
            await asyncio.wait({unsettled})
        found = await asyncio.to_thread(self._ledger.episode, name)
        self._check_ours(found.simulator)
        return found

    async def close(self) -> None:
        """Waits for what is being written, and signs it."""
        await self._writer.close()
        await self.seal()

    async def _answer(self, episode: OpenEpisode, request: Request) -> Answered:
        came = time.perf_counter()
        async with episode.lock:
            waited = time.perf_counter() - came
            if step := session.recorded(episode, request):
                return Answered(step, None)
            observed = await self._observe(episode, request.action)
            step = session.next_step(episode, request.action, observed)
            shown = time.perf_counter()
            await self._record(episode, step)
        now = time.perf_counter()
        asked = step.usage.engine_seconds or None
        queued = waited + observed.queued_seconds
        return Answered(step, Timings(queued, asked, now - shown, now - came))

    async def _record(self, episode: OpenEpisode, step: EpisodeStep) -> None:
        """Makes a step durable, whoever waits for it."""
        try:
            await self._writer.submit(*writes_of(episode.opening.run, step))
        except asyncio.CancelledError:
            # Whoever asks next reads the ledger, once what became of this is settled.
            settled = self._unsettled[episode.id] = self._writer.submit()
            settled.add_done_callback(partial(self._settle, episode.id))
            self._episodes.drop(episode.id)
            raise
        episode.add(step, session.said(step))
        if step.ending:
            self._episodes.drop(episode.id)

    def _settle(self, name: str, settled: asyncio.Future[None]) -> None:
        del self._unsettled[name]
        settled.exception()  # the store is gone, which whoever asks next is told

    def _count(self, writes: Sequence[Write]) -> None:
        """What begins and ends by what is durable now."""
        for write in writes:
            match write:
                case Opened():
                    self.metrics.began()
                case Closed(reason=reason):
                    self.metrics.ended(reason)

    async def _observe(self, episode: OpenEpisode, action: str) -> Observed:
        if episode.opening.replay:
            return session.replayed(episode, action)
        asked = [*episode.history, Message(role="user", content=action)]
        seed = session.seed(self.manifest, episode.opening, len(episode.steps) + 1)
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
        except (NotFound, Conflict):  # what else has this name is not told of
            return False

    async def _opened(self, opening: RunOpening, name: str, tenant: str) -> AgentRun | None:
        """The run that was opened so under this name, whatever its alias means by now."""
        with suppress(NotFound, Conflict):  # what else has this name is not told of
            run = await self.run(name)
            meant = opening.model_copy(update={"simulator": run.opening.simulator})
            if (run.opening, run.tenant) == (meant, tenant):
                return run
        return None

    def _check_ours(self, simulator: Digest) -> None:
        if simulator != self.digest:
            raise Conflict(
                f"this belongs to simulator {simulator} and is never answered by {self.digest}"
            )

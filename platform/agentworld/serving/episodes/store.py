"""The episodes of a process: in memory between their steps, and in the ledger for good.

All simulators of a process share it, so that there is one bound on what is in memory and one
writer before the ledger. Whatever it keeps is in the ledger too, so that any replica, and the one
after a crash, can go on with any episode.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from agentworld.errors import Conflict
from agentworld.ledger import Ledger
from agentworld.ledger.writes import Closed, Opened
from agentworld.records.base import Digest
from agentworld.records.episode import CloseReason, Episode, EpisodeStep
from agentworld.rendering.episode import step_messages
from agentworld.serving.episodes.open_episodes import OpenEpisode, OpenEpisodes
from agentworld.serving.episodes.owners import Owners
from agentworld.serving.episodes.writer import Writer, writes_of
from agentworld.serving.telemetry.metrics import Metrics


class EpisodeStore:
    """What the services of a process share; `only` bounds its care to one simulator's episodes."""

    def __init__(
        self, ledger: Ledger, *, only: Digest | None = None, most_in_memory: int = 10_000
    ) -> None:
        self.ledger = ledger
        self.owners = Owners(ledger)
        self.metrics = Metrics(partial(ledger.counts.open_episodes, simulator=only))
        self._only = only
        self._writer = Writer(ledger.write)
        self._episodes = OpenEpisodes(most_in_memory)
        self._unsettled: dict[str, asyncio.Future[None]] = {}
        """Steps on their way to the ledger that nobody waits for any more."""

    def find_open(self, episode: str) -> OpenEpisode | None:
        """An episode that this replica goes on with, if it is one."""
        return self._episodes.get(episode)

    def keep(self, episode: str, make: Callable[[], OpenEpisode]) -> OpenEpisode:
        """The episode that is held, else this one, which is from now on."""
        return self._episodes.keep(episode, make)

    def drop(self, episode: str) -> None:
        """Holds an episode no longer; the ledger has it."""
        self._episodes.drop(episode)

    async def run_of(self, episode: str) -> str:
        """Which run an episode is of; raises NotFound, and tells nothing else of it."""
        open_episode = self._episodes.get(episode)
        return open_episode.opening.run if open_episode else await self.owners.run_of(episode)

    async def episode(self, name: str) -> Episode:
        """An episode with its steps, as the ledger has it."""
        if unsettled := self._unsettled.get(name):
            await asyncio.wait({unsettled})
        return await asyncio.to_thread(self.ledger.episode, name)

    async def settled(self, name: str) -> Episode:
        """The same, once no step of it is under way here."""
        if open_episode := self._episodes.get(name):
            async with open_episode.lock:
                pass
        return await self.episode(name)

    async def begin(self, episode: Episode) -> None:
        """Makes a new episode durable; raises Conflict where its name is taken."""
        counts = self.metrics.of(episode.simulator)
        await self._writer.write(Opened(episode), tell=counts.begin)

    async def record(self, episode: OpenEpisode, step: EpisodeStep) -> None:
        """Makes a step durable, whoever waits for it."""
        tell = None
        if step.ending:
            tell = partial(self.metrics.of(episode.simulator).end, step.ending)
        try:
            await self._writer.submit(*writes_of(episode.opening.run, step), tell=tell)
        except asyncio.CancelledError:
            # Whoever asks next reads the ledger, once what became of this is settled.
            settled = self._unsettled[episode.id] = self._writer.submit()
            settled.add_done_callback(partial(self._settle, episode.id))
            self._episodes.drop(episode.id)
            raise
        episode.add(step, step_messages(step))
        if step.ending:
            self._episodes.drop(episode.id)

    async def end(self, name: str, reason: CloseReason = "closed") -> None:
        """Ends an episode; one that is over stays as it is."""
        episode = await self.episode(name)
        while episode.closed is None:
            end = Closed(episode.run, name, len(episode.steps), episode.head, reason)
            try:
                await self._write_end(end, episode.simulator)
                break
            except Conflict:
                previous, episode = episode, await self.episode(name)
                if episode == previous:
                    raise
                # It went on meanwhile, or was closed by another replica.
        self._episodes.drop(name)

    async def expire(self, idle_seconds: float) -> int:
        """Ends the episodes that stood still for so long; returns how many."""
        before = time.time() - idle_seconds
        idle = await asyncio.to_thread(self.ledger.idle_episodes, self._only, before)
        for end in idle:
            # One that went on meanwhile is not idle any more.
            with suppress(Conflict):
                await self._write_end(end, (await self.owners.of(end.run)).simulator)
            self._episodes.drop(end.episode)
        return len(idle)

    async def close(self) -> None:
        """Waits for what is being written."""
        await self._writer.close()

    async def _write_end(self, end: Closed, simulator: Digest) -> None:
        tell = partial(self.metrics.of(simulator).end, end.reason)
        await self._writer.write(end, tell=tell)

    def _settle(self, name: str, settled: asyncio.Future[None]) -> None:
        del self._unsettled[name]
        settled.exception()  # the store is gone, which whoever asks next is told

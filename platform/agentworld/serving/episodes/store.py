"""The episodes of a process: open ones in memory, all of them in the ledger.

All simulators of a process share it, so that one bound limits the memory and one writer serves the
ledger. Everything in memory is in the ledger too, so any replica can continue any episode, also
after a crash.
"""

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from agentworld.domains.base import domain_of
from agentworld.errors import Conflict
from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeClosed, EpisodeOpened
from agentworld.records.base import Digest
from agentworld.records.episode import CloseReason, Episode, EpisodeStep
from agentworld.records.message import Message
from agentworld.rendering.episode import step_messages
from agentworld.serving.episodes.quota import Owners
from agentworld.serving.episodes.writer import Writer, writes_of
from agentworld.serving.telemetry.metrics import Metrics

_MOST_BYTES = 1 << 30
"""Half of the limit of memory that the chart sets for a service."""


class OpenEpisode:
    """One open episode of a replica."""

    __slots__ = (
        *(
            "closed",
            "domain",
            "head",
            "history",
            "id",
            "lock",
            "num_bytes",
            "opening",
            "record",
            "simulator",
            "steps",
        ),
    )

    def __init__(
        self, episode: Episode, history: list[Message], record: tuple[EpisodeStep, ...]
    ) -> None:
        self.id = episode.id
        self.simulator = episode.simulator
        self.opening = episode.opened_with
        self.domain = domain_of(self.opening.domain)
        self.head = episode.head
        self.closed = episode.closed
        self.steps = list(episode.steps)
        self.history = history
        """The engine's messages before the next action."""
        self.record = record
        """The recorded steps of a replay."""
        self.lock = asyncio.Lock()
        """Steps of one episode are taken one at a time."""
        self.num_bytes = _memory_of(history)
        """Its memory, about."""

    def add(self, step: EpisodeStep, messages: list[Message]) -> None:
        """Appends a durable step."""
        self.steps.append(step)
        self.history += messages
        self.num_bytes += _memory_of(messages)
        self.head = step.head
        self.closed = step.ending


def _memory_of(messages: Iterable[Message]) -> int:
    """Twice the bytes of their texts, because the opening and the steps hold these too."""
    return 2 * sum(sys.getsizeof(message["content"]) for message in messages)


class OpenEpisodes:
    """The most recently used episodes, at most `capacity` of them, and at most `most_bytes` unless
    it is the last one.
    """

    def __init__(self, capacity: int, most_bytes: int = _MOST_BYTES) -> None:
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._episodes: OrderedDict[str, OpenEpisode] = OrderedDict()

    def __len__(self) -> int:
        return len(self._episodes)

    def get(self, name: str) -> OpenEpisode | None:
        """The episode, or null."""
        episode = self._episodes.get(name)
        if episode is not None:
            self._episodes.move_to_end(name)
        return episode

    def keep(self, name: str, make: Callable[[], OpenEpisode]) -> OpenEpisode:
        """The existing entry, or a new one: concurrent requests for a name share one lock."""
        episode = self.get(name)
        if episode is None:
            episode = self._episodes[name] = make()
            self._num_bytes += episode.num_bytes
            self._drop_oldest()
        return episode

    def add(self, episode: OpenEpisode, step: EpisodeStep, messages: list[Message]) -> None:
        """Appends a durable step to an episode."""
        before = episode.num_bytes
        episode.add(step, messages)
        if self._episodes.get(episode.id) is episode:
            self._num_bytes += episode.num_bytes - before
            self._drop_oldest()

    def drop(self, name: str) -> None:
        """Removes an episode that has ended or was continued elsewhere."""
        if episode := self._episodes.pop(name, None):
            self._num_bytes -= episode.num_bytes

    def drop_run(self, run: str) -> None:
        """Removes the episodes of a run."""
        for episode in list(self._episodes.values()):
            if episode.opening.run == run:
                self.drop(episode.id)

    def _drop_oldest(self) -> None:
        if not self._is_full():
            return
        for episode in list(self._episodes.values())[:-1]:
            # an episode in use stays, because its step is not written yet
            if self._is_full() and not episode.lock.locked():
                self.drop(episode.id)

    def _is_full(self) -> bool:
        return len(self._episodes) > self._capacity or self._num_bytes > self._most_bytes


class EpisodeStore:
    """The state that a process's services share; `simulator` limits it to its own episodes."""

    def __init__(
        self, ledger: Ledger, *, simulator: Digest | None = None, most_in_memory: int = 10_000
    ) -> None:
        self.ledger = ledger
        self.owners = Owners(ledger)
        self.metrics = Metrics(partial(ledger.counts.open_episodes, simulator=simulator))
        self._simulator = simulator
        self._writer = Writer(ledger.write)
        self._episodes = OpenEpisodes(most_in_memory)
        self._unsettled: dict[str, asyncio.Future[None]] = {}
        """Writes whose requests were given up."""

    def find_open(self, episode: str) -> OpenEpisode | None:
        """An episode that this replica has in memory."""
        return self._episodes.get(episode)

    def keep(self, episode: str, make: Callable[[], OpenEpisode]) -> OpenEpisode:
        """The entry in memory, or a new one."""
        return self._episodes.keep(episode, make)

    def drop(self, episode: str) -> None:
        """Removes an episode from memory; the ledger has it."""
        self._episodes.drop(episode)

    def drop_run(self, run: str) -> None:
        """Removes the episodes of a closed run from memory; the ledger has them."""
        self._episodes.drop_run(run)

    async def run_of(self, episode: str) -> str:
        """The run of an episode; raises NotFound, and reveals nothing else of it."""
        open_episode = self._episodes.get(episode)
        return open_episode.opening.run if open_episode else await self.owners.run_of(episode)

    async def episode(self, name: str) -> Episode:
        """An episode with its steps, from the ledger."""
        if unsettled := self._unsettled.get(name):
            await asyncio.wait({unsettled})
        return await asyncio.to_thread(self.ledger.episode, name)

    async def wait_settled(self, name: str) -> Episode:
        """The same, after its running step on this replica has ended."""
        if open_episode := self._episodes.get(name):
            async with open_episode.lock:
                pass
        return await self.episode(name)

    async def begin(self, episode: Episode) -> None:
        """Makes a new episode durable; raises Conflict if its name is taken."""
        counts = self.metrics.of(episode.simulator)
        await self._writer.write(EpisodeOpened(episode), on_written=counts.begin)

    async def record(self, episode: OpenEpisode, step: EpisodeStep) -> None:
        """Makes a step durable, even if its request is given up."""
        on_written = None
        if step.ending:
            on_written = partial(self.metrics.of(episode.simulator).end, step.ending)
        try:
            await self._writer.submit(*writes_of(episode.opening.run, step), on_written=on_written)
        except asyncio.CancelledError:
            # the next request reads the ledger, after this write has ended
            settled = self._unsettled[episode.id] = self._writer.submit()
            settled.add_done_callback(partial(self._settle, episode.id))
            self._episodes.drop(episode.id)
            raise
        self._episodes.add(episode, step, step_messages(step))
        if step.ending:
            self._episodes.drop(episode.id)

    async def end(self, name: str, reason: CloseReason = "closed") -> None:
        """Ends an episode; an ended one stays unchanged."""
        episode = await self.episode(name)
        while episode.closed is None:
            end = EpisodeClosed(episode.run, name, len(episode.steps), episode.head, reason)
            try:
                await self._write_end(end, episode.simulator)
                break
            except Conflict:
                previous, episode = episode, await self.episode(name)
                if episode == previous:
                    raise
                # it was continued meanwhile, or closed by another replica
        self._episodes.drop(name)

    async def expire(self, idle_seconds: float) -> int:
        """Ends the episodes without a step for `idle_seconds`; returns their number."""
        before = time.time() - idle_seconds
        idle = await asyncio.to_thread(self.ledger.idle_episodes, self._simulator, before)
        for end in idle:
            # an episode that was continued meanwhile is not idle
            with suppress(Conflict):
                await self._write_end(end, (await self.owners.of(end.run)).simulator)
            self._episodes.drop(end.episode)
        return len(idle)

    async def close(self) -> None:
        """Waits for pending writes."""
        await self._writer.close()

    async def _write_end(self, end: EpisodeClosed, simulator: Digest) -> None:
        on_written = partial(self.metrics.of(simulator).end, end.reason)
        await self._writer.write(end, on_written=on_written)

    def _settle(self, name: str, settled: asyncio.Future[None]) -> None:
        if self._unsettled.get(name) is settled:  # otherwise another step was cancelled after it
            del self._unsettled[name]
        settled.exception()  # the store failed, which the next request reports

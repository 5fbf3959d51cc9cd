"""Episodes between their steps. The ledger has all of it: what is dropped here is read again."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from agentworld.domains.base import domain_of
from agentworld.records.episode import Episode, EpisodeStep
from agentworld.records.message import Message


class OpenEpisode:
    """One episode as a replica goes on with it."""

    __slots__ = (
        *(
            "closed",
            "domain",
            "head",
            "history",
            "id",
            "lock",
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
        """What the engine reads before the next action."""
        self.record = record
        """The steps that a replay answers with."""
        self.lock = asyncio.Lock()
        """Steps of one episode are taken one after the other."""

    def add(self, step: EpisodeStep, messages: list[Message]) -> None:
        """Goes on after a step that is durable."""
        self.steps.append(step)
        self.history += messages
        self.head = step.head
        self.closed = step.ending


class OpenEpisodes:
    """The episodes used last, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._episodes: OrderedDict[str, OpenEpisode] = OrderedDict()

    def __len__(self) -> int:
        return len(self._episodes)

    def get(self, name: str) -> OpenEpisode | None:
        """The episode, if it is here."""
        episode = self._episodes.get(name)
        if episode is not None:
            self._episodes.move_to_end(name)
        return episode

    def keep(self, name: str, make: Callable[[], OpenEpisode]) -> OpenEpisode:
        """The episode that is here, else this one: all who ask for a name share one lock."""
        episode = self.get(name)
        if episode is None:
            episode = self._episodes[name] = make()
            self._drop_oldest()
        return episode

    def drop(self, name: str) -> None:
        """Forgets an episode: it is over, or went on elsewhere."""
        self._episodes.pop(name, None)

    def _drop_oldest(self) -> None:
        for name in list(self._episodes)[: max(0, len(self._episodes) - self._most)]:
            # One at work stays: its step is not written yet.
            if not self._episodes[name].lock.locked():
                del self._episodes[name]

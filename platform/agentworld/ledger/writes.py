"""Writes to an open run, and their rows."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentworld.ledger.rows import Row
from agentworld.records import log
from agentworld.records.base import Digest, now
from agentworld.records.episode import CloseReason, Episode, EpisodeStep
from agentworld.records.log import LogEntry


class EpisodeOpened(NamedTuple):
    """An episode begins, with the copied steps if it is a fork."""

    episode: Episode

    @property
    def run(self) -> str:
        """The run of the episode."""
        return self.episode.run


class NewStep(NamedTuple):
    """A step was answered."""

    run: str
    step: EpisodeStep


class EpisodeClosed(NamedTuple):
    """An episode ends."""

    run: str
    episode: str
    num_steps: int
    head: Digest
    reason: CloseReason


Write = EpisodeOpened | NewStep | EpisodeClosed

InRow = Callable[[str | None], bytes | None]
"""Returns the bytes of a text for its row, or null if it is in the object store."""


class Writes(NamedTuple):
    """The writes of one run, by kind."""

    opened: list[Episode]
    own_steps: list[EpisodeStep]
    closed: list[EpisodeClosed]

    @classmethod
    def of(cls, writes: Iterable[Write]) -> "Writes":
        """Groups writes by kind; the order within a kind stays."""
        batch = cls([], [], [])
        for write in writes:
            match write:
                case EpisodeOpened(episode):
                    batch.opened.append(episode)
                case NewStep(_, step):
                    batch.own_steps.append(step)
                case EpisodeClosed():
                    batch.closed.append(write)
        return batch

    @property
    def steps(self) -> list[EpisodeStep]:
        """All new steps in the order of their log entry."""
        copied_steps = [step for episode in self.opened for step in episode.steps]
        return copied_steps + self.own_steps

    @property
    def texts(self) -> list[str | None]:
        """All texts of openings, actions and observations."""
        openings = [episode.opened_with.text for episode in self.opened]
        return openings + [text for step in self.steps for text in (step.action, step.observation)]

    @property
    def log_fields(self) -> list[log.Fields]:
        """The fields of the log entries; the steps' entry comes before the closings."""
        steps = self.steps
        return [
            *map(log.episode_opened, self.opened),
            *([log.new_steps(steps)] if steps else []),
            *(log.episode_closed(*end[1:]) for end in self.closed),
        ]


def log_entries(run: str, first: int, all_fields: Sequence[log.Fields]) -> list[LogEntry]:
    """Log entries from the sequence number `first` on."""
    at = now()
    return [LogEntry.of(run, first + index, at, fields) for index, fields in enumerate(all_fields)]


def episode_rows(episodes: Sequence[Episode], in_row: InRow) -> Iterator[Row]:
    """Rows of EPISODES."""
    at = time.time()
    for episode in episodes:
        opening = episode.opened_with
        source = opening.fork or opening.replay
        yield (
            episode.id,
            episode.run,
            in_row(opening.text),
            False,
            episode.opening_digest,
            episode.num_copied,
            at,
            None,
            source.episode if source else None,
        )


def step_rows(
    steps: Sequence[EpisodeStep], keys: Mapping[str, int], entry: int, in_row: InRow
) -> Iterator[Row]:
    """Rows of STEPS, with their episodes' keys."""
    at = time.time()
    for index, step in enumerate(steps):
        yield (
            keys[step.episode],
            step.number,
            in_row(step.action),
            in_row(step.observation),
            step.action_digest,
            step.observation_digest,
            step.reward,
            step.done,
            step.truncated,
            *step.confidence,
            *step.usage,
            step.head,
            entry,
            index,
            at,
        )

"""Checks that the record of one episode matches its signature, without reading other episodes.

A run's log covers an episode: by the entries that open and close it, and by those with the heads of
its steps.
"""

from collections.abc import Iterator
from typing import NamedTuple

from agentworld.audit.checks.signed_log import (
    SignedLog,
    opening_entry,
    read_log,
    step_problems,
)
from agentworld.audit.read.evidence import Evidence, Finding, state_of
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.episode import CloseReason, Episode
from agentworld.records.garbled import readable, reading
from agentworld.records.log import Fields, episode_closed

_AT_ONCE = 64
"""The number of episodes that are read together."""


class EpisodeVerification(Finding):
    """The answer to: does this episode's record match its signature?

    Its problems are those of the episode and of its run's log.
    """

    run: str
    simulator: Digest
    num_steps: int
    closed: CloseReason | None
    erased: bool
    """Retention erased its texts, so only their digests were compared."""
    last_entry: int
    """The last entry of the run's log about the episode; 0 without one."""
    signed_length: int
    """Entries that the newest valid checkpoint covers; later ones are only chained."""


class EpisodeBounds(NamedTuple):
    """A run's log entries about an episode."""

    opening: Fields
    closing: Fields | None = None


def verify_episode(name: str, ledger: Ledger, evidence: Evidence) -> EpisodeVerification:
    """Checks an episode and its run's log.

    Raises NotFound if the episode never existed, EvidenceError if it is missing or garbled.
    """
    log = read_log(_load_episode(name, ledger).run, ledger, evidence)
    # Read again after its log: what a service adds in the meantime is at the log's end.
    episode = _readable(name, ledger)
    entries, bounds = _entries_of(episode, log), bounds_by_episode(log).get(name)
    # Without a closing that names its last head, a step that is missing from any entry may be its
    # own.
    covering = entries if bounds and bounds.closing else None
    problems = (
        *log.problems,
        *step_problems(log, covering),
        *readable(f"episode {name}", _differences(episode, bounds, log, ledger)),
    )
    last = max(entries, default=0)
    return EpisodeVerification(
        subject=f"episode {name}",
        run=log.run.id,
        simulator=log.run.simulator,
        grade=state_of(problems, signed=last <= log.signed_length),
        num_steps=len(episode.steps),
        closed=episode.closed,
        erased=episode.opening is None,
        last_entry=last,
        signed_length=log.signed_length,
        problems=problems,
    )


def bounds_by_episode(log: SignedLog) -> dict[str, EpisodeBounds]:
    """The bounds of each episode of a log."""
    bounds: dict[str, EpisodeBounds] = {}
    for fields in log.entry_fields:
        name = str(fields.get("episode"))
        if fields.get("kind") == "episode-opened":
            bounds[name] = EpisodeBounds(fields)
        elif fields.get("kind") == "episode-closed" and name in bounds:
            bounds[name] = bounds[name]._replace(closing=fields)
    return bounds


def episode_problems(
    bounds: dict[str, EpisodeBounds], log: SignedLog, ledger: Ledger
) -> Iterator[str]:
    """Problems of the episodes that the log names."""
    names = list(bounds)
    for start in range(0, len(names), _AT_ONCE):
        group = names[start : start + _AT_ONCE]
        read = _read_batch(group, ledger)
        for name in group:
            yield from _problems(name, read.get(name), bounds[name], log, ledger)


def _read_batch(names: list[str], ledger: Ledger) -> dict[str, Episode]:
    """Reads several episodes; empty if one is unreadable: each is then read singly for its
    reason.
    """
    try:
        with reading("a run's episodes"):
            return ledger.episodes_named(names)
    except EvidenceError:
        return {}


def _problems(
    name: str, read: Episode | None, bounds: EpisodeBounds, log: SignedLog, ledger: Ledger
) -> Iterator[str]:
    try:
        episode = read or _readable(name, ledger)
    except NotFound:
        yield f"episode {name} is missing"
    except EvidenceError as error:
        yield str(error)
    else:
        yield from readable(f"episode {name}", _differences(episode, bounds, log, ledger))


def _load_episode(name: str, ledger: Ledger) -> Episode:
    """Loads an episode; raises EvidenceError if a run's log names it but the ledger lacks it."""
    try:
        return _readable(name, ledger)
    except NotFound:
        entry = opening_entry(name, ledger)
        if entry is None:
            raise
        raise EvidenceError(
            f"episode {name} was opened in run {entry.run} (entry {entry.sequence} of its log)"
            " and is missing from the ledger; restore the ledger"
        ) from None


def _readable(name: str, ledger: Ledger) -> Episode:
    """Loads an episode; raises EvidenceError if its rows are invalid."""
    with reading(f"episode {name}"):
        return ledger.episode(name)


def _entries_of(episode: Episode, log: SignedLog) -> set[int]:
    """The indexes of log entries about the episode or its steps."""
    heads = {step.head for step in episode.steps}
    numbers = {
        number
        for number, fields in enumerate(log.entry_fields, 1)
        if fields.get("episode") == episode.id
    }
    return numbers | {
        number for number, entry_heads in log.heads.items() if not heads.isdisjoint(entry_heads)
    }


def _differences(
    episode: Episode, bounds: EpisodeBounds | None, log: SignedLog, ledger: Ledger
) -> Iterator[str]:
    if bounds is None:
        yield f"the log of run {log.run.id} does not name episode {episode.id}"
        return
    first = episode.first_head
    copied_start = bounds.opening.get("head"), bounds.opening.get("num_copied", 0)
    if copied_start != (first, episode.num_copied) or not episode.has_whole_opening:
        yield f"episode {episode.id} did not begin as the log says"
    if problem := log.erasures.problem_of(episode.id, erased=episode.opening is None):
        yield problem
    if not _follows(episode, first):
        yield f"the steps of episode {episode.id} do not follow from each other"
    if bounds.closing:
        ending = [bounds.closing.get(name) for name in ("reason", "num_steps", "head")]
        if ending != [episode.closed, len(episode.steps), episode.head]:
            yield f"episode {episode.id} did not end as the log says"
    elif episode.closed and not _closed_since(episode, episode.closed, log, ledger):
        yield f"episode {episode.id} has ended, but the log has no such entry"


def _follows(episode: Episode, first: Digest) -> bool:
    try:
        with reading(f"episode {episode.id}"):
            return episode.follows(first)
    except EvidenceError:  # what cannot be hashed was never chained
        return False


def _closed_since(episode: Episode, reason: CloseReason, log: SignedLog, ledger: Ledger) -> bool:
    """Whether it ended after the log was read."""
    closing_entry = episode_closed(episode.id, len(episode.steps), episode.head, reason)
    newer = ledger.logs.entries(log.run.id, after=len(log.entry_fields))
    return any(closing_entry.items() <= entry.readable_fields.items() for entry in newer)

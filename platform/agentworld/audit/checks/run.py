"""Checks that the record of a run matches its signature: nothing changed, left out or cut off.

A problem is a sentence. The chain of every episode is compared with the log that names its heads,
and the log with its signed checkpoints.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from agentworld.audit.checks.episode import bounds_by_episode, episode_problems
from agentworld.audit.checks.signed_log import SignedLog, read_log, step_problems
from agentworld.audit.read.evidence import Evidence, Finding, state_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.garbled import reading

_BETWEEN_SEARCHES = 10_000
"""Allocations between garbage collections; Python's default is 700."""


class RunVerification(Finding):
    """The answer to: does this run's record match its signature?

    Its notes are declarations, such as losses of a restored backup.
    """

    simulator: Digest | None = None
    """Null if the run's row is missing or garbled."""
    weights: Literal["signed", "claimed"] | None = None
    """Whether the step that wrote the final weights signed them; null while the run is open."""
    log_length: int = 0
    signed_length: int = 0
    """Entries that the newest valid checkpoint covers; later ones are only chained."""
    num_episodes: int = 0
    num_steps: int = 0


def verify_run(name: str, ledger: Ledger, evidence: Evidence) -> RunVerification:
    """Checks all of a run, also while it is served.

    Raises NotFound if the run does not exist, EvidenceError if it is missing or garbled.
    """
    with infrequent_gc(), reading(f"the ledger's record of run {name}"):
        log = read_log(name, ledger, evidence)
        run, bounds = log.run, bounds_by_episode(log)
        problems = (
            *log.problems,
            *step_problems(log),
            *_count_problems(log),
            *episode_problems(bounds, log, ledger),
        )
    return RunVerification(
        subject=f"run {name}",
        simulator=run.simulator,
        grade=state_of(problems, signed=log.signed_length >= len(log.entry_fields)),
        weights=("signed" if run.closing.signature else "claimed") if run.closing else None,
        log_length=len(log.entry_fields),
        signed_length=log.signed_length,
        num_episodes=run.num_episodes,
        num_steps=run.num_steps,
        problems=problems,
        notes=log.notes,
    )


def verify_any(name: str, ledger: Ledger, evidence: Evidence) -> RunVerification:
    """Like `verify_run`, but a missing or garbled record is a broken finding.

    Raises NotFound if the run does not exist.
    """
    try:
        return verify_run(name, ledger, evidence)
    except EvidenceError as error:
        return garbled_run(name, str(error))


def garbled_run(name: str, problem: str) -> RunVerification:
    """The finding for an unreadable record."""
    return RunVerification(subject=f"run {name}", grade="broken", problems=(problem,))


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """Reduces garbage collection in the block, which otherwise takes half of the time.

    Millions of short-lived rows would otherwise trigger scans of all other objects.
    """
    thresholds = gc.get_threshold()
    # Nested, or garbage collection is off.
    if not 0 < thresholds[0] < _BETWEEN_SEARCHES:
        yield
        return
    gc.set_threshold(_BETWEEN_SEARCHES, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _count_problems(log: SignedLog) -> Iterator[str]:
    prefix = log.entry_fields[: log.run.log_length]
    num_opened = sum(fields.get("kind") == "episode-opened" for fields in prefix)
    if log.run.num_episodes != num_opened:
        yield f"the ledger has {log.run.num_episodes} episodes, but the log names {num_opened}"


def verification_of(run: str, sources: Sources) -> RunVerification | None:
    """The verification of a run's record; null if nothing was signed."""
    return verify_any(run, sources.ledger, sources.evidence) if sources.evidence else None

"""Whether the record of a run is the one that was signed: nothing changed, left out or cut off.

A problem is a sentence. The chain of every episode is compared with the log that names its
heads, and the log with what was signed of it.
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
"""Objects that come and stay; Python's own number is 700."""


class RunVerification(Finding):
    """The answer to: is this run's record the one that was signed?

    Its notes are what was declared of it: what a restored backup lost.
    """

    simulator: Digest | None = None
    """Null where the run's row is gone or garbled."""
    weights: Literal["signed", "claimed"] | None = None
    """Whether the step that wrote the final weights signed them; null while the run is open."""
    log_length: int = 0
    signed_length: int = 0
    """Entries that the newest good checkpoint covers; later ones are only chained."""
    num_episodes: int = 0
    num_steps: int = 0


def verify_run(name: str, ledger: Ledger, evidence: Evidence) -> RunVerification:
    """Checks all of a run, also while it is served.

    Raises NotFound where there is no such run, EvidenceError where it is gone or garbled.
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
    """The same for whoever looks at many: a record that is gone or garbled is broken.

    Raises NotFound where there is no such run.
    """
    try:
        return verify_run(name, ledger, evidence)
    except EvidenceError as error:
        return garbled_run(name, str(error))


def garbled_run(name: str, problem: str) -> RunVerification:
    """Of a record that cannot even be read."""
    return RunVerification(subject=f"run {name}", grade="broken", problems=(problem,))


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """For the block garbage is searched for less often, which took half of all the time.

    Millions of rows come and go, and all else in memory was looked through again and again.
    """
    thresholds = gc.get_threshold()
    # Around another one, or where nothing is searched.
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
        yield f"the ledger holds {log.run.num_episodes} episodes and the log names {num_opened}"


def verification_of(run: str, sources: Sources) -> RunVerification | None:
    """Whether a run's record is the one that was signed; null where nothing was."""
    return verify_any(run, sources.ledger, sources.evidence) if sources.evidence else None

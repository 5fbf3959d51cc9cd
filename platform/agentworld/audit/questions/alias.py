"""The target of an alias of a simulator or agent at a time, and who set it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from agentworld.audit.read.evidence import as_of
from agentworld.errors import InputError
from agentworld.records.base import Digest, Record
from agentworld.records.statements.alias import AliasChange


class AliasAudit(Record):
    """The answer to: what was this alias's target then, and who set it?"""

    alias: str
    at: str
    simulator: Digest | None
    """The simulator of new runs, except a canary's share, or the agent's simulator; null if the
    alias had no target.
    """
    target: str | None
    """The simulator, or the version of an agent, as NAME@VERSION."""
    since: AliasChange | None
    """The newest move by then; null before the first one."""
    until: AliasChange | None
    """The next move; null if there is none."""


def audit_alias(alias: str, history: Sequence[AliasChange], at: datetime) -> AliasAudit:
    """Uses the alias's history in its order; a move takes effect at its own time."""
    before = as_of(history, at)
    since = before[-1] if before else None
    meaning = since.meaning if since else None
    return AliasAudit(
        alias=alias,
        at=at.isoformat(),
        simulator=meaning.simulator if meaning else None,
        target=since.target if since and meaning else None,
        since=since,
        until=next(iter(history[len(before) :]), None),
    )


def moment(text: str, now: datetime) -> datetime:
    """Parses a date (its first instant) or a time, in UTC by default.

    Raises InputError if it is invalid or in the future.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"{text!r} is not a time; write it like 2026-03-01 or 2026-03-01T12:00+02:00"
        ) from error
    at = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    if at > now:
        raise InputError(f"{text} is in the future; name a past time")
    return at

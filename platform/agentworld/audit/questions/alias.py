"""What a person's name for a simulator or an agent meant at a moment, and by whose word."""

from collections.abc import Sequence
from datetime import UTC, datetime

from agentworld.audit.read.evidence import as_of
from agentworld.errors import InputError
from agentworld.records.base import Digest, Record
from agentworld.records.statements.alias import AliasChange


class AliasAudit(Record):
    """The answer to: what did this name mean then, and who moved it?"""

    alias: str
    at: str
    simulator: Digest | None
    """What new runs were opened with, but for a canary's part, or what made the agent; null where
    it meant nothing."""
    target: str | None
    """The simulator, or the version of an agent, as people write it."""
    since: AliasChange | None
    """The newest move by then; null where nobody had given the name yet."""
    until: AliasChange | None
    """The move that came next; null where it stands."""


def audit_alias(alias: str, history: Sequence[AliasChange], at: datetime) -> AliasAudit:
    """By the name's history, in its order; a move counts from its own moment on."""
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
    """A date (its first instant) or a time, in UTC where it names no zone.

    Raises InputError for what is none, or has not come yet.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"{text!r} is no time; write it like 2026-03-01 or 2026-03-01T12:00+02:00"
        ) from error
    at = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    if at > now:
        raise InputError(f"{text} has not come yet; name a time that is past")
    return at

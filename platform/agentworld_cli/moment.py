"""A moment that an audit is asked about: its option, what a store knew then, how it is told."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentworld.audit.read.sources import Sources

At = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="A time in the past, as 2026-03-01 or 2026-03-01T12:00+02:00."
    ),
]


def sources_at(store: str, at: str) -> "Sources":
    """What a store knows, or knew at a moment; raises InputError for what is none."""
    from agentworld.audit.questions.alias import moment
    from agentworld.operations.audit_sources import open_sources

    at_time = moment(at, datetime.now(UTC)) if at else None
    return open_sources(Path(store)).as_of(at_time)


def format_moment(at: str | None) -> str:
    """The end of a heading."""
    return f" at {at}" if at else ""

"""Whether the reports by which names moved are still there to be read."""

from collections.abc import Iterator
from datetime import datetime

from agentworld.audit.read.at_time import is_as_of
from agentworld.errors import AgentworldError
from agentworld.ledger.aliases import Aliases
from agentworld.storage.objects import ObjectStore


def report_problems(
    aliases: Aliases, objects: ObjectStore | None, at: datetime | None = None
) -> Iterator[str]:
    """Of those that are gone or changed: a move's digest of its report is signed with it. Of all
    moves, or of those by a moment.
    """
    if objects is None:
        return
    for change in aliases.readable_history().changes:
        if change.report is None or not is_as_of(change.at, at):
            continue
        try:
            objects.get(change.report)
        except AgentworldError as error:
            if error.retryable:
                raise
            yield f"alias {change.alias!r} moved at {change.at} by a report that is gone: {error}"

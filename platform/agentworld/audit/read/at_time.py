"""What was known at a moment, by one rule for everything that has a time.

A version has the time of the registry, a run that of its log, a statement the one that was signed.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from operator import attrgetter
from typing import TypeVar

from agentworld.errors import EvidenceError, NotFound
from agentworld.records.garbled import reading

_Item = TypeVar("_Item")


def as_of(
    items: Iterable[_Item],
    at: datetime | None,
    time_of: Callable[[_Item], object] = attrgetter("at"),
) -> list[_Item]:
    """Those that were there at a moment; null is now.

    What has no time that can be read was there at every moment, and a verification names it.
    """
    return [item for item in items if at is None or _was_there(item, at, time_of)]


def _was_there(item: _Item, at: datetime, time_of: Callable[[_Item], object]) -> bool:
    try:
        with reading("a time"):
            return datetime.fromisoformat(str(time_of(item))) <= at
    except (EvidenceError, NotFound):
        return True

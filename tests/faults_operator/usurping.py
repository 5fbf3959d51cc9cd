"""Whether anybody wrote who did not lead any more. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from faults_operator.api_proxy import Written

_SLACK_SECONDS = 2.0
"""For a call that was under way, and for a network that is slow to hear of it."""


class Stop(NamedTuple):
    """A process did nothing for so long."""

    replica: str
    since: float
    until: float


def usurped(
    written: Iterable[Written], stops: Sequence[Stop], renewal_seconds: float
) -> list[Written]:
    """The writes of who had not renewed the lease for as long as one may rely on it.

    Who was stopped meanwhile may end the call that was under way.
    """
    renewed: dict[str, float] = {}
    found = []
    for each in sorted(written, key=lambda each: each.sent):
        if each.matter == "lease":
            if each.holds:
                renewed[each.replica] = each.sent
            continue
        may_until = renewed.get(each.replica, float("-inf")) + renewal_seconds
        for stop in stops:
            if stop.replica == each.replica and stop.since <= may_until:
                may_until = max(may_until, stop.until)
        if each.sent > may_until + _SLACK_SECONDS:
            found.append(each)
    return found

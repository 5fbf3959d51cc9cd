"""Whether anybody wrote who did not lead any more. Pure."""

from collections.abc import Iterable, Sequence

from campaigns.operator.api_proxy import Written
from campaigns.operator.stalls import Stall

OURS = "campaign"
"""The process that hands on the requests of all replicas."""
_SLACK_SECONDS = 2.0
"""For a call that was under way, and for a network that is slow to hear of it."""


def usurped(
    written: Iterable[Written], stalls: Sequence[Stall], renewal_seconds: float
) -> list[Written]:
    """The writes of who had not renewed the lease for as long as one may rely on it.

    Who did nothing meanwhile may end the call that was under way.
    """
    renewed: dict[str, float] = {}
    found = []
    for each in sorted(written, key=lambda each: each.sent):
        if each.matter == "lease":
            if each.holds:
                renewed[each.replica] = each.sent
            continue
        may_until = renewed.get(each.replica, float("-inf")) + renewal_seconds
        for stall in stalls:
            if stall.process in (each.replica, OURS) and stall.since <= may_until:
                may_until = max(may_until, stall.until)
        if each.sent > may_until + _SLACK_SECONDS:
            found.append(each)
    return found

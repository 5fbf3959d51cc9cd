"""Whether an operator wrote after it had lost the lease. Pure."""

from collections.abc import Iterable, Sequence

from campaigns.operator.api_proxy import Written
from campaigns.operator.stalls import Stall

OURS = "campaign"
"""The process that forwards the requests of all replicas."""
_SLACK_SECONDS = 2.0
"""For an active call, and for a slow network."""


def usurped(
    writes: Iterable[Written], stalls: Sequence[Stall], renewal_seconds: float
) -> list[Written]:
    """The writes of an operator that had not renewed the lease in time.

    A stalled process may finish its active call.
    """
    renewal_times: dict[str, float] = {}
    findings = []
    for write in sorted(writes, key=lambda write: write.sent):
        if write.matter == "lease":
            if write.holds:
                renewal_times[write.replica] = write.sent
            continue
        allowed_until = renewal_times.get(write.replica, float("-inf")) + renewal_seconds
        for stall in stalls:
            if stall.process in (write.replica, OURS) and stall.since <= allowed_until:
                allowed_until = max(allowed_until, stall.until)
        if write.sent > allowed_until + _SLACK_SECONDS:
            findings.append(write)
    return findings

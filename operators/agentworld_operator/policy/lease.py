"""Which of several operators acts: a Lease that one of them holds and renews.

No clock of another machine is believed. A lease has run out when its holder has not written to it
for its duration on our own clock, as Kubernetes' own components have it.
"""

from typing import Literal, NamedTuple

Decision = Literal["take", "renew", "wait"]


class Lease(NamedTuple):
    """What a Lease says."""

    holder: str
    """Empty where the last one gave it back."""
    version: str
    """Changes with every write."""


class LeaseObservation(NamedTuple):
    """A Lease, and when it was first seen so, on our own clock."""

    lease: Lease | None
    since: float


def observe(before: LeaseObservation | None, lease: Lease | None, now: float) -> LeaseObservation:
    """What is known after it was read once more."""
    return before if before and before.lease == lease else LeaseObservation(lease, now)


def decide(
    identity: str, observation: LeaseObservation, duration_seconds: float, now: float
) -> Decision:
    """What to do with a lease that was just read."""
    lease = observation.lease
    if lease is None or not lease.holder:
        return "take"
    if lease.holder == identity:
        return "renew"
    return "take" if now - observation.since >= duration_seconds else "wait"

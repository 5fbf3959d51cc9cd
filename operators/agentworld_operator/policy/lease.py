"""Decides which operator leads, by a Lease that one of them holds and renews.

Clocks of other machines are not trusted. As in Kubernetes' own components, a lease has expired if
its holder has not written it for its duration by this machine's clock.
"""

from typing import Literal, NamedTuple

Decision = Literal["take", "renew", "wait"]


class Lease(NamedTuple):
    """The content of a Lease."""

    holder: str
    """The holder's name; empty if it released the lease."""
    version: str
    """Changes with every write."""


class LeaseObservation(NamedTuple):
    """A Lease, and when this content was first seen, by this machine's clock."""

    lease: Lease | None
    since: float


def observe(before: LeaseObservation | None, lease: Lease | None, now: float) -> LeaseObservation:
    """Updates the observation after another read."""
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

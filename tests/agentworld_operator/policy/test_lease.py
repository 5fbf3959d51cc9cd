import pytest

from agentworld_operator.policy.lease import Lease, LeaseObservation, decide, observe

OWN_LEASE, OTHER_LEASE = Lease("me", "1"), Lease("other", "1")


@pytest.mark.parametrize(
    ("lease", "age", "decision"),
    [
        (None, 0, "take"),
        (Lease("", "1"), 0, "take"),
        (OWN_LEASE, 0, "renew"),
        (OWN_LEASE, 100, "renew"),
        (OTHER_LEASE, 14.9, "wait"),
        (OTHER_LEASE, 15, "take"),
    ],
    ids=["none", "given back", "ours", "ours, old", "theirs", "theirs, run out"],
)
def test_a_free_or_expired_lease_is_taken_and_an_own_lease_is_renewed(lease, age, decision):
    assert decide("me", LeaseObservation(lease, since=10), 15, now=10 + age) == decision


def test_every_write_of_the_holder_restarts_the_lease_time():
    first = observe(None, OTHER_LEASE, now=0)
    assert observe(first, OTHER_LEASE, now=10) == first
    assert observe(first, OTHER_LEASE._replace(version="2"), now=10).since == 10


def test_a_lease_contains_no_time_of_the_holders_clock():
    assert set(Lease._fields) == {"holder", "version"}

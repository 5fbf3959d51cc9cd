"""Leadership over a Lease in memory, which refuses writes over another version.

Seconds are those of an event loop with virtual time.
"""

import asyncio
import time

import pytest

from agentworld.errors import ClusterError
from agentworld_operator.leader import Leadership, Times
from fakes.virtual_time import run

TIMES = Times(duration=0.3, renewal=0.2, pause=0.02)


class Leases:
    def __init__(self):
        self.lease = None
        self.failing: ClusterError | None = None
        self.slow_seconds = 0.0

    def get(self, _kind, _name):
        self._fail()
        return self.lease

    def create(self, written):
        self._fail()
        if self.lease:
            raise ClusterError("there is one", status=409)
        return self._write(written, "1")

    def replace(self, written):
        self._fail()
        version = self.lease["metadata"]["resourceVersion"]
        if written["metadata"]["resourceVersion"] != version:
            raise ClusterError("somebody was faster", status=409)
        return self._write(written, str(int(version) + 1))

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]

    def _write(self, written, version):
        metadata = {"name": "operator", "resourceVersion": version}
        self.lease = {**written, "metadata": metadata}
        return self.lease

    def _fail(self):
        time.sleep(self.slow_seconds)
        if self.failing:
            raise self.failing


@pytest.fixture
def leases():
    return Leases()


def leadership(leases, name="me"):
    clock = asyncio.get_running_loop().time
    return Leadership(leases, "operator", name, times=TIMES, clock=clock)


async def within(seconds, awaited):
    async with asyncio.timeout(seconds):
        await awaited


def test_the_first_replica_leads_and_the_second_waits(leases):
    async def work():
        await within(1, leadership(leases).acquire())
        with pytest.raises(TimeoutError):
            await within(0.1, leadership(leases, "other").acquire())

    run(work())
    assert leases.holder == "me"


def test_a_renewing_leader_leads_longer_than_its_lease_duration(leases):
    async def work():
        me = leadership(leases)
        await me.acquire()
        keeping = asyncio.create_task(me.keep())
        with pytest.raises(TimeoutError):
            await within(0.6, leadership(leases, "other").acquire())
        assert not keeping.done()
        keeping.cancel()

    run(work())


def test_another_replica_takes_an_expired_lease(leases):
    async def work():
        await leadership(leases).acquire()
        await within(1, leadership(leases, "other").acquire())

    run(work())
    assert leases.holder == "other"
    assert leases.lease["spec"]["leaseTransitions"] == 2


def test_a_released_lease_is_taken_at_once(leases):
    async def work():
        me = leadership(leases)
        await me.acquire()
        await me.release()
        await within(0.1, leadership(leases, "other").acquire())

    run(work())


def test_a_lease_is_released_despite_a_renewal_in_progress(leases):
    async def work():
        mine = leadership(leases)
        await mine.acquire()
        leases.slow_seconds = 0.02
        keeping = asyncio.create_task(mine.keep())
        await asyncio.sleep(0.01)  # it has asked, and will write
        keeping.cancel()
        await mine.release()

    asyncio.run(work())
    assert leases.holder == ""


def test_a_replica_canceled_while_acquiring_releases_the_lease(leases):
    async def work():
        leases.slow_seconds = 0.02
        mine = leadership(leases)
        taking = asyncio.create_task(mine.acquire())
        await asyncio.sleep(0.01)
        taking.cancel()
        await mine.release()

    asyncio.run(work())
    assert leases.holder == ""


def test_a_lease_held_by_another_replica_is_not_released(leases):
    async def work():
        me = leadership(leases)
        await me.acquire()
        await leadership(leases, "other").acquire()
        await me.release()

    run(work())
    assert leases.holder == "other"


@pytest.mark.parametrize("thread_seconds", [0.0, 60.0], ids=["fails", "does not answer"])
def test_a_leader_that_cannot_renew_stops_before_its_lease_expires(leases, thread_seconds):
    async def work():
        me = leadership(leases)
        await me.acquire()
        loop = asyncio.get_running_loop()
        began, loop.thread_seconds = loop.time(), thread_seconds
        leases.failing = ClusterError("gone")
        await me.keep()
        return loop.time() - began

    assert run(work()) < TIMES.duration


def test_a_temporary_failure_does_not_end_leadership(leases):
    async def work():
        me = leadership(leases)
        await me.acquire()
        keeping = asyncio.create_task(me.keep())
        leases.failing = ClusterError("gone")
        await asyncio.sleep(0.1)
        leases.failing = None
        await asyncio.sleep(0.3)
        assert not keeping.done()
        keeping.cancel()

    run(work())


def test_a_leader_whose_lease_was_taken_stops_at_once(leases):
    async def work():
        me = leadership(leases)
        await me.acquire()
        leases.lease["spec"]["holderIdentity"] = "other"
        leases.lease["metadata"]["resourceVersion"] = "77"
        await within(0.1, me.keep())

    run(work())


def test_a_permanent_failure_is_raised(leases):
    leases.failing = ClusterError("you may not", status=403)

    async def work():
        await leadership(leases).acquire()

    with pytest.raises(ClusterError, match="you may not"):
        run(work())


def test_many_replicas_that_start_at_once_have_one_leader(leases):
    async def work():
        all_ = [asyncio.create_task(leadership(leases, f"op-{n}").acquire()) for n in range(8)]
        done, waiting = await asyncio.wait(all_, timeout=0.15)
        for task in waiting:
            task.cancel()
        return len(done)

    assert run(work()) == 1


@pytest.mark.parametrize("turns", range(6))
def test_a_leader_canceled_as_an_answer_arrives_stops(leases, monkeypatch, turns):
    """So many turns of the loop after it."""

    async def work():
        answer = asyncio.Event()

        async def answered(*_):
            await answer.wait()
            return True

        monkeypatch.setattr(asyncio, "to_thread", answered)
        keeping = asyncio.create_task(leadership(leases).keep())
        await asyncio.sleep(0.01)
        answer.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=0.1)
        assert keeping.cancelled()

    run(work())

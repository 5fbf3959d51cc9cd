"""Leadership over a Lease in memory, which refuses writes over another version.

Seconds are those of an event loop with virtual time.
"""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentworld.errors import ClusterError
from agentworld_operator.leader import Leadership, Times
from fakes.virtual_time import run
from waiting import DEADLINE

TIMES = Times(duration=0.3, renewal=0.2, pause=0.02)


class Leases:
    def __init__(self):
        self.lease = None
        self.failing: ClusterError | None = None
        self.slow_seconds = 0.0
        self.renewed = threading.Event()

    def get(self, _kind, _name):
        self._fail()
        return self.lease

    def create(self, lease):
        self._fail()
        if self.lease:
            raise ClusterError("there is one", status=409)
        return self._write(lease, "1")

    def replace(self, lease):
        self._fail()
        version = self.lease["metadata"]["resourceVersion"]
        if lease["metadata"]["resourceVersion"] != version:
            raise ClusterError("somebody was faster", status=409)
        self.renewed.set()
        return self._write(lease, str(int(version) + 1))

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]

    def _write(self, lease, version):
        metadata = {"name": "operator", "resourceVersion": version}
        self.lease = {**lease, "metadata": metadata}
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


async def within(seconds, awaitable):
    async with asyncio.timeout(seconds):
        await awaitable


def test_the_first_replica_leads_and_the_second_waits(leases):
    async def work():
        await within(1, leadership(leases).acquire())
        with pytest.raises(TimeoutError):
            await within(0.1, leadership(leases, "other").acquire())

    run(work())
    assert leases.holder == "me"


def test_a_renewing_leader_leads_longer_than_its_lease_duration(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        keep_task = asyncio.create_task(leader.keep())
        with pytest.raises(TimeoutError):
            await within(0.6, leadership(leases, "other").acquire())
        assert not keep_task.done()
        keep_task.cancel()

    run(work())


def test_a_leader_renews_while_the_threads_of_other_work_are_busy(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        renewal = loop.run_in_executor(None, leases.renewed.wait, DEADLINE)
        keep_task = asyncio.create_task(leader.keep())
        is_renewed = await renewal
        keep_task.cancel()
        return is_renewed

    assert asyncio.run(work())


def test_another_replica_takes_an_expired_lease(leases):
    async def work():
        await leadership(leases).acquire()
        await within(1, leadership(leases, "other").acquire())

    run(work())
    assert leases.holder == "other"
    assert leases.lease["spec"]["leaseTransitions"] == 2


def test_a_released_lease_is_taken_at_once(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        await leader.release()
        await within(0.1, leadership(leases, "other").acquire())

    run(work())


def test_a_lease_is_released_despite_a_renewal_in_progress(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        leases.slow_seconds = 0.02
        keep_task = asyncio.create_task(leader.keep())
        await asyncio.sleep(0.01)  # the renewal has read the lease, and will write it
        keep_task.cancel()
        await leader.release()

    asyncio.run(work())
    assert leases.holder == ""


def test_a_replica_canceled_while_acquiring_releases_the_lease(leases):
    async def work():
        leases.slow_seconds = 0.02
        leader = leadership(leases)
        acquire_task = asyncio.create_task(leader.acquire())
        await asyncio.sleep(0.01)
        acquire_task.cancel()
        await leader.release()

    asyncio.run(work())
    assert leases.holder == ""


def test_a_lease_held_by_another_replica_is_not_released(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        await leadership(leases, "other").acquire()
        await leader.release()

    run(work())
    assert leases.holder == "other"


@pytest.mark.parametrize("thread_seconds", [0.0, 60.0], ids=["fails", "does not answer"])
def test_a_leader_that_cannot_renew_stops_before_its_lease_expires(leases, thread_seconds):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        loop = asyncio.get_running_loop()
        began, loop.thread_seconds = loop.time(), thread_seconds
        leases.failing = ClusterError("gone")
        await leader.keep()
        return loop.time() - began

    assert run(work()) < TIMES.duration


def test_a_temporary_failure_does_not_end_leadership(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        keep_task = asyncio.create_task(leader.keep())
        leases.failing = ClusterError("gone")
        await asyncio.sleep(0.1)
        leases.failing = None
        await asyncio.sleep(0.3)
        assert not keep_task.done()
        keep_task.cancel()

    run(work())


def test_a_leader_whose_lease_was_taken_stops_at_once(leases):
    async def work():
        leader = leadership(leases)
        await leader.acquire()
        leases.lease["spec"]["holderIdentity"] = "other"
        leases.lease["metadata"]["resourceVersion"] = "77"
        await within(0.1, leader.keep())

    run(work())


def test_a_permanent_failure_is_raised(leases):
    leases.failing = ClusterError("you may not", status=403)

    async def work():
        await leadership(leases).acquire()

    with pytest.raises(ClusterError, match="you may not"):
        run(work())


def test_many_replicas_that_start_at_once_have_one_leader(leases):
    async def work():
        tasks = [asyncio.create_task(leadership(leases, f"op-{n}").acquire()) for n in range(8)]
        done, pending = await asyncio.wait(tasks, timeout=0.15)
        for task in pending:
            task.cancel()
        return len(done)

    assert run(work()) == 1


@pytest.mark.parametrize("turns", range(6))
def test_a_leader_canceled_as_an_answer_arrives_stops(leases, turns):
    """The leader is canceled these turns of the loop after the answer."""

    async def work():
        answer = asyncio.Event()

        async def wait_for_answer(*_):
            await answer.wait()
            return True

        asyncio.get_running_loop().run_in_executor = wait_for_answer
        keep_task = asyncio.create_task(leadership(leases).keep())
        await asyncio.sleep(0.01)
        answer.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        keep_task.cancel()
        await asyncio.wait({keep_task}, timeout=0.1)
        assert keep_task.cancelled()

    run(work())

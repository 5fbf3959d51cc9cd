"""Replicas whose addresses change, with a virtual clock."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.engine.base import CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.pool import EnginePool
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling
from fakes import virtual_time

MESSAGES, SAMPLING = [{"role": "user", "content": "ls"}], Sampling()
ADDRESSES = [f"http://10.0.0.{number}:8000" for number in range(4)]
EPISODES = [f"episode-{number}" for number in range(40)]
INTERVAL, PATIENCE = 3.0, 0.5


def request(episode):
    return CompletionRequest(MESSAGES, SAMPLING, affinity=episode)


class Site:
    """Engines that respond with their addresses, a name that resolves to those in `there`, and a
    clock.
    """

    def __init__(self, *addresses, concurrency=64, **settings):
        self.there, self.now, self.num_looks, self.num_sleeps = set(addresses), 0.0, 0, 0
        self.failing, self.held, self.closed, self.later = {}, {}, [], {}
        self.silent = asyncio.Event()
        self.silent.set()
        self.concurrency = concurrency
        self.engine = EnginePool(
            self.connect,
            resolve=self.resolve,
            clock=lambda: self.now,
            sleep=self.sleep,
            **settings,
        )

    async def resolve(self):
        self.num_looks += 1
        await self.silent.wait()
        if isinstance(self.there, OSError):
            raise self.there
        return set(self.there)

    def connect(self, url):
        async def answer(_messages):
            if url in self.held:
                await self.held[url].wait()
            return self.failing.get(url, url)

        engine = ClosingEngine(answer, lambda: self.closed.append(url))
        return Replica(url, engine, concurrency=self.concurrency, clock=lambda: self.now)

    async def sleep(self, seconds):
        """Applies the changes of `later` that are due."""
        self.now += seconds
        self.num_sleeps += 1
        assert self.num_sleeps < 1_000
        for due_time in sorted(self.later):
            if due_time <= self.now:
                self.there = self.later.pop(due_time)
        await asyncio.sleep(0)

    async def ask(self, episode="e"):
        return (await self.engine.complete(request(episode))).text

    async def homes(self):
        return {episode: await self.ask(episode) for episode in EPISODES}


class ClosingEngine(FakeEngine):
    def __init__(self, answer, on_close):
        super().__init__(answer)
        self._closed = on_close

    async def close(self):
        self._closed()


def test_the_name_is_resolved_only_on_requests_and_once_per_interval():
    site = Site(*ADDRESSES)

    async def work():
        assert site.num_looks == 0
        await site.homes()
        assert site.num_looks == 1
        site.now += INTERVAL
        await asyncio.gather(*map(site.ask, EPISODES))
        assert site.num_looks == 2

    asyncio.run(work())


@pytest.mark.waits
@given(st.lists(st.sets(st.sampled_from(ADDRESSES), min_size=1), min_size=2, max_size=6))
def test_address_changes_move_only_affected_episodes_and_use_no_removed_address(eras):
    site = Site()

    async def work():
        old_homes, old_addresses = {}, set()
        for addresses in eras:
            site.there = addresses
            site.now += INTERVAL
            homes = await site.homes()
            assert set(homes.values()) <= addresses
            added = addresses - old_addresses
            for episode, home in old_homes.items():
                assert homes[episode] == home or home not in addresses or homes[episode] in added
            assert sorted(site.closed) == sorted(set(site.closed))
            assert set(site.engine.states()) == addresses
            old_homes, old_addresses = homes, addresses
            site.closed.clear()

    asyncio.run(work())


def test_a_breaker_keeps_its_state_while_its_address_exists():
    site = Site(*ADDRESSES[:2])
    site.failing[ADDRESSES[0]] = EngineError("gone")

    async def work():
        await site.homes()
        assert site.engine.states()[ADDRESSES[0]] == "open"
        site.there.add(ADDRESSES[2])
        site.now += INTERVAL
        (home,) = {await site.ask()} & set(ADDRESSES)
        assert home in ADDRESSES[1:3]
        site.there.remove(ADDRESSES[0])
        site.now += INTERVAL
        await site.ask()
        site.there.add(ADDRESSES[0])
        site.now += INTERVAL
        await site.ask()
        assert site.engine.states()[ADDRESSES[0]] == "closed"

    asyncio.run(work())


def test_a_removed_replica_is_closed_after_its_last_request():
    site = Site(ADDRESSES[0])

    async def work():
        site.held[ADDRESSES[0]] = asyncio.Event()
        old_request = asyncio.create_task(site.ask())
        await asyncio.sleep(0.01)
        site.there = {ADDRESSES[1]}
        site.now += INTERVAL
        assert await site.ask() == ADDRESSES[1]
        assert site.closed == []
        site.held[ADDRESSES[0]].set()
        assert await old_request == ADDRESSES[0]
        assert site.closed == [ADDRESSES[0]]

    asyncio.run(work())


def test_a_failed_request_is_not_retried_on_a_removed_replica():
    site = Site(*ADDRESSES[:2])

    async def work():
        home = await site.ask()
        site.held[home] = asyncio.Event()
        site.there, tasks = {home}, []
        for _ in range(2):
            tasks.append(asyncio.create_task(site.ask()))
            await settle()
            site.now += INTERVAL
        assert site.closed == [url for url in ADDRESSES[:2] if url != home]
        site.failing[home] = EngineError("broken")
        site.held[home].set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [str(error) for error in asyncio.run(work())] == ["broken"] * 2


async def settle():
    """Returns when every task waits for the test again."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_request_waits_for_the_first_replica_and_reports_its_wait():
    site = Site()
    site.later = {7.0: {ADDRESSES[0]}}

    async def work():
        return await site.engine.complete(request("e"))

    completion = asyncio.run(work())
    assert (completion.text, completion.queued_seconds) == (ADDRESSES[0], 9.0)


def test_a_request_without_a_replica_fails_as_starting_after_wait_seconds():
    site = Site(wait_seconds=20.0, most_waiting=1)

    async def work():
        for _ in range(2):  # a request that gives up frees its place
            with pytest.raises(EngineError) as error:
                await site.ask()
        return error.value

    error = asyncio.run(work())
    assert (error.kind, error.retryable, error.retry_after_seconds) == ("starting", True, INTERVAL)
    assert (error.queued_seconds, site.now) == (20.0, 40.0)


def test_requests_above_most_waiting_are_refused_and_the_others_are_answered():
    site = Site(most_waiting=3)
    site.later = {5.0: {ADDRESSES[0]}}

    async def work():
        tasks = [asyncio.create_task(site.ask(str(number))) for number in range(5)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(work())
    assert results[:3] == [ADDRESSES[0]] * 3
    assert [(error.kind, error.retry_after_seconds) for error in results[3:]] == [
        ("starting", INTERVAL)
    ] * 2


def test_a_replicas_error_contains_the_time_waited():
    site = Site()
    site.later = {7.0: {ADDRESSES[0]}}
    site.failing[ADDRESSES[0]] = EngineError("long", kind="context", retryable=False)

    async def work():
        with pytest.raises(EngineError) as error:
            await site.ask()
        return error.value

    error = asyncio.run(work())
    assert (error.kind, error.queued_seconds) == ("context", 9.0)


def test_known_replicas_are_used_when_the_name_cannot_be_resolved(caplog):
    site = Site(ADDRESSES[0])

    async def work():
        await site.ask()
        site.there = OSError("the name server is gone")
        site.now += INTERVAL
        return await site.ask()

    assert asyncio.run(work()) == ADDRESSES[0]
    assert "the name server is gone" in caplog.text


def test_a_hanging_name_server_delays_requests_to_a_known_replica_only_briefly():
    site = Site(ADDRESSES[0])

    async def work():
        await site.ask()
        site.silent.clear()
        site.now += INTERVAL
        start_time = asyncio.get_running_loop().time()
        answers = [await site.ask()]
        site.now += PATIENCE
        answers += [await site.ask(), await site.ask()]
        wait_seconds = asyncio.get_running_loop().time() - start_time
        site.there = {ADDRESSES[1]}
        site.silent.set()
        await settle()
        return answers, await site.ask(), site.num_looks, wait_seconds

    assert virtual_time.run(work()) == ([ADDRESSES[0]] * 3, ADDRESSES[1], 2, PATIENCE)


def test_a_request_for_the_first_replica_waits_for_a_hanging_name_server():
    site = Site()

    async def work():
        site.silent.clear()
        task = asyncio.create_task(site.ask())
        for _ in range(9):
            await asyncio.sleep(PATIENCE)
            site.now += PATIENCE
        num_sleeps = site.num_sleeps
        site.there = {ADDRESSES[0]}
        site.silent.set()
        return num_sleeps, await task

    num_sleeps, answer = virtual_time.run(work())
    assert num_sleeps < 20
    assert answer == ADDRESSES[0]


def test_a_request_beyond_concurrency_and_queue_gets_a_capacity_error():
    site = Site(ADDRESSES[0], concurrency=2)

    async def work():
        site.held[ADDRESSES[0]] = asyncio.Event()
        tasks = [asyncio.create_task(site.ask()) for _ in range(2 + 2 * 64 + 1)]
        refused_tasks, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        site.held[ADDRESSES[0]].set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.exception().kind for task in refused_tasks]

    assert asyncio.run(work()) == ["capacity"]


def test_an_engine_closed_during_name_resolution_connects_to_no_replica():
    site = Site()
    site.silent.clear()

    async def work():
        task = asyncio.create_task(site.ask())
        await settle()
        await site.engine.close()
        task.cancel()
        site.there = {ADDRESSES[0]}
        site.silent.set()
        await settle()

    asyncio.run(work())
    assert site.engine.states() == {}


def test_closing_the_engine_closes_all_replicas():
    site = Site(*ADDRESSES)

    async def work():
        await site.ask()
        await site.engine.close()

    asyncio.run(work())
    assert sorted(site.closed) == ADDRESSES

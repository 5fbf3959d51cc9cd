"""A step that nobody waits for any more, while it is written."""

import asyncio
import threading

import pytest

from agentworld.engine.fake import FakeEngine
from agentworld.http.schemas import Request
from agentworld.ledger import Ledger
from agentworld.records.episode import EpisodeOpening
from agentworld.serving.episodes.store import Keeper
from agentworld.serving.service import SimulatorService
from make import records
from make.service import OPENING


class HeldLedger(Ledger):
    """Writes steps when it is let go."""

    def __init__(self, url):
        super().__init__(url)
        self.free, self.holds = threading.Event(), threading.Event()
        self.free.set()

    def write(self, writes):
        if not self.free.is_set():
            self.holds.set()
            assert self.free.wait(30)
        super().write(writes)


@pytest.fixture
def ledger(tmp_path):
    ledger = HeldLedger(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield ledger
    ledger.close()


@pytest.fixture
def keeper(ledger):
    return Keeper(ledger)


@pytest.fixture
def service(keeper):
    engine = FakeEngine(lambda messages: f"{len(messages)}\n[0] ~")
    return SimulatorService(records.manifest(), engine, keeper)


async def cancel_while_written(service, ledger, episode, number):
    ledger.free.clear()
    step = asyncio.create_task(service.step(episode, Request(number, "ls")))
    await asyncio.to_thread(ledger.holds.wait, 30)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step


async def begun(service, ledger):
    run = ledger.open_run(OPENING, service.digest).id
    return (await service.reset(EpisodeOpening(run=run, turn_limit=2))).episode


def test_it_is_there_for_who_reads_the_episode_next(service, keeper, ledger):
    async def work():
        episode = await begun(service, ledger)
        await cancel_while_written(service, ledger, episode, 1)
        reading = asyncio.create_task(keeper.episode(episode))
        await asyncio.sleep(0.05)
        assert not reading.done()
        ledger.free.set()
        return await reading

    assert [step.action for step in asyncio.run(work()).steps] == ["ls"]


def test_it_is_answered_again_from_the_record_and_the_next_one_follows_it(service, keeper, ledger):
    async def work():
        episode = await begun(service, ledger)
        await cancel_while_written(service, ledger, episode, 1)
        ledger.free.set()
        again = await service.step(episode, Request(1, "ls"))
        after = await service.step(episode, Request(2, "pwd"))
        await keeper.close()
        return again, after

    again, after = asyncio.run(work())
    assert (again.step.number, again.timings) == (1, None)
    assert (after.step.number, after.step.done) == (2, True)


def test_an_end_that_nobody_waited_for_is_counted_once(service, keeper, ledger):
    async def work():
        episode = await begun(service, ledger)
        await service.step(episode, Request(1, "ls"))
        await cancel_while_written(service, ledger, episode, 2)
        ledger.free.set()
        assert (await keeper.episode(episode)).closed == "limit"
        await asyncio.sleep(0)

    asyncio.run(work())
    assert service.counts.ended["limit"] == 1

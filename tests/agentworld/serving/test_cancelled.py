"""A step whose client disconnects while the step is written."""

import asyncio
import threading

import pytest

from agentworld.engine.fake import FakeEngine
from agentworld.http.schemas import Request
from agentworld.ledger import Ledger
from agentworld.records.episode import Confidence, EpisodeOpening
from agentworld.serving.episodes.session import StepObservation, next_step
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.service import SimulatorService
from make import records
from make.service import OPENING
from waiting import DEADLINE


class HeldLedger(Ledger):
    """Writes steps when it is released."""

    def __init__(self, url):
        super().__init__(url)
        self.free, self.holds = threading.Event(), threading.Event()
        self.free.set()

    def write(self, writes):
        if not self.free.is_set():
            self.holds.set()
            assert self.free.wait(DEADLINE)
        super().write(writes)


@pytest.fixture
def ledger(tmp_path):
    ledger = HeldLedger(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield ledger
    ledger.close()


@pytest.fixture
def episode_store(ledger):
    return EpisodeStore(ledger)


@pytest.fixture
def service(episode_store):
    engine = FakeEngine(lambda messages: f"{len(messages)}\n[0] ~")
    return SimulatorService(records.manifest(), engine, episode_store)


async def cancel_while_written(service, ledger, episode, number):
    ledger.free.clear()
    step = asyncio.create_task(service.step(episode, Request(number, "ls")))
    await asyncio.to_thread(ledger.holds.wait, DEADLINE)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step


async def begin_episode(service, ledger):
    run = ledger.open_run(OPENING, service.digest).id
    return (await service.reset(EpisodeOpening(run=run, turn_limit=2))).episode


def test_a_canceled_step_is_visible_to_the_next_reader_of_the_episode(
    service, episode_store, ledger
):
    async def work():
        episode = await begin_episode(service, ledger)
        await cancel_while_written(service, ledger, episode, 1)
        task = asyncio.create_task(episode_store.episode(episode))
        await asyncio.sleep(0.05)
        assert not task.done()
        ledger.free.set()
        return await task

    assert [step.action for step in asyncio.run(work()).steps] == ["ls"]


def test_a_canceled_step_can_be_repeated_from_the_record_and_followed(
    service, episode_store, ledger
):
    async def work():
        episode = await begin_episode(service, ledger)
        await cancel_while_written(service, ledger, episode, 1)
        ledger.free.set()
        repeat = await service.step(episode, Request(1, "ls"))
        second = await service.step(episode, Request(2, "pwd"))
        await episode_store.close()
        return repeat, second

    repeat, second = asyncio.run(work())
    assert (repeat.step.number, repeat.timings) == (1, None)
    assert (second.step.number, second.step.done) == (2, True)


def test_an_episode_ended_by_a_canceled_step_is_counted_once(service, episode_store, ledger):
    async def work():
        episode = await begin_episode(service, ledger)
        await service.step(episode, Request(1, "ls"))
        await cancel_while_written(service, ledger, episode, 2)
        ledger.free.set()
        assert (await episode_store.episode(episode)).closed == "limit"
        await asyncio.sleep(0)

    asyncio.run(work())
    assert service.counts.ended["limit"] == 1


def test_two_concurrent_writes_of_a_step_can_both_be_canceled(service, episode_store, ledger):
    """Canceling the first write frees the episode's lock, for which the second write waits."""

    async def work():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        episode = await service.load_open(await begin_episode(service, ledger))
        step = next_step(episode, "ls", StepObservation("rimo\n[0] ~", Confidence()))
        ledger.free.clear()
        first = asyncio.create_task(episode_store.record(episode, step))
        await asyncio.to_thread(ledger.holds.wait, DEADLINE)
        first.cancel()
        second = asyncio.create_task(episode_store.record(episode, step))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([first, second])
        ledger.free.set()
        return await episode_store.wait_settled(episode.id)

    errors = []
    assert [step.action for step in asyncio.run(work()).steps] == ["ls"]
    assert errors == []

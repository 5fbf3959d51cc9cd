import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentworld.engine.base import CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling

CONCURRENCY, QUEUE = 2, 3
CUT_OFF = EngineError("no end", kind="cut-off")  # says nothing about the health of a replica


def request_for(name):
    return CompletionRequest([{"role": "user", "content": name}], Sampling())


class Gate:
    """A replica whose responses the test controls."""

    def __init__(self, concurrency=CONCURRENCY, queue=QUEUE):
        self.now = 0.0
        self.under_way = {}
        engine = FakeEngine(self._hold)
        self.replica = Replica(
            "here", engine, concurrency=concurrency, queue=queue, clock=lambda: self.now
        )

    async def _hold(self, messages):
        name = messages[-1]["content"]
        self.under_way[name] = asyncio.get_running_loop().create_future()
        try:
            return await self.under_way[name]
        finally:
            del self.under_way[name]

    async def ask(self, name):
        """A task whose request was sent, waits or was refused."""
        task = asyncio.create_task(self.replica.complete(request_for(name)))
        await settle()
        return task

    async def answer(self, name, answer="besa"):
        self.under_way[name].set_result(answer)
        await settle()


async def settle():
    """Returns when every task waits for the test again."""
    for _ in range(9):
        await asyncio.sleep(0)


def is_refused(task):
    return task.done() and isinstance(task.exception(), EngineError)


def test_a_request_beyond_concurrency_and_queue_is_refused_with_a_retry_after():
    async def work():
        gate = Gate()
        tasks = [await gate.ask(str(number)) for number in range(CONCURRENCY + QUEUE + 1)]
        assert list(gate.under_way) == ["0", "1"]
        assert [is_refused(task) for task in tasks] == [False] * 5 + [True]
        return tasks[-1].exception()

    error = asyncio.run(work())
    assert (error.kind, error.retryable) == ("capacity", True)
    assert error.retry_after_seconds == pytest.approx(1.0 * (QUEUE + 1) / CONCURRENCY)


def test_a_free_slot_is_given_to_the_longest_waiting_request():
    async def work():
        gate = Gate(concurrency=1)
        for number in range(3):
            await gate.ask(str(number))
        await gate.answer("0", EngineError("gone"))
        assert list(gate.under_way) == ["1"]
        await gate.answer("1")
        assert list(gate.under_way) == ["2"]

    asyncio.run(work())


def test_a_canceled_waiting_request_frees_its_queue_place():
    async def work():
        gate = Gate(concurrency=1, queue=1)
        await gate.ask("0")
        waiting_task = await gate.ask("1")
        waiting_task.cancel()
        await settle()
        assert not is_refused(await gate.ask("2"))
        await gate.answer("0")
        assert list(gate.under_way) == ["2"]

    asyncio.run(work())


def test_a_request_canceled_when_its_turn_comes_passes_its_slot_on():
    async def work():
        gate = Gate(concurrency=1)
        await gate.ask("0")
        waiting_task = await gate.ask("1")
        await gate.ask("2")
        gate.under_way["0"].set_result("besa")
        await asyncio.sleep(0)
        assert not gate.under_way
        waiting_task.cancel()
        await settle()
        assert list(gate.under_way) == ["2"]

    asyncio.run(work())


def test_retry_after_is_estimated_from_the_answer_times():
    async def work():
        gate = Gate(concurrency=1, queue=0)
        for number in range(100):
            await gate.ask(str(number))
            gate.now += 8.0
            await gate.answer(str(number))
        await gate.ask("last")
        return (await gate.ask("refused")).exception().retry_after_seconds

    assert asyncio.run(work()) == pytest.approx(8.0, rel=0.01)


class AnyOrder(RuleBasedStateMachine):
    """Requests arrive, are answered, fail and are canceled in any order."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.gate = Gate()
        self.tasks = {}
        self.active, self.waiting = [], []

    @invariant()
    def the_engine_is_asked_what_the_model_says(self):
        assert list(self.gate.under_way) == self.active

    @rule()
    def ask(self):
        name = str(len(self.tasks))
        task = self.tasks[name] = self.run(self.gate.ask(name))
        if len(self.active) < CONCURRENCY:
            self.active.append(name)
        elif len(self.waiting) < QUEUE:
            self.waiting.append(name)
        else:
            assert is_refused(task)
            assert task.exception().kind == "capacity"

    @precondition(lambda self: self.active)
    @rule(data=st.data(), answer=st.sampled_from(["besa", CUT_OFF]))
    def answer(self, data, answer):
        name = data.draw(st.sampled_from(self.active))
        self.run(self.gate.answer(name, answer))
        assert is_refused(self.tasks[name]) or self.tasks[name].result().text == answer
        self._leaves(name)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def give_up(self, data):
        name = data.draw(st.sampled_from(self.active + self.waiting))
        self.tasks[name].cancel()
        self.run(settle())
        assert self.tasks[name].cancelled()
        self._leaves(name)

    def _leaves(self, name):
        if name in self.waiting:
            self.waiting.remove(name)
            return
        self.active.remove(name)
        if self.waiting:
            self.active.append(self.waiting.pop(0))

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def teardown(self):
        for task in self.tasks.values():
            task.cancel()
        self.run(settle())
        self.loop.close()


TestAnyOrder = pytest.mark.compute(AnyOrder.TestCase)
TestAnyOrder.settings = settings(max_examples=40)

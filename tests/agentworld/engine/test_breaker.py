"""A replica's breaker, without an event loop: a request is a coroutine that the test resumes."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from agentworld.engine.base import CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError, InputError
from agentworld.records.simulator import Sampling

ASKED, SAMPLING = [{"role": "user", "content": "ls"}], Sampling()
REQUEST = CompletionRequest(ASKED, SAMPLING)
FAILURES, PAUSE, PROBE, RETRY = 5, 5.0, 10.0, 1.0
BROKEN = [EngineError("gone"), EngineError("late", kind="slow")]
NOTHING_SAID = [
    EngineError("no", kind=kind)
    for kind in ("capacity", "refused", "context", "cut-off", "unparsable")
] + [InputError("wrong"), asyncio.CancelledError()]


class Held:
    """A future that the test resolves."""

    def __await__(self):
        return (yield)


async def hold(_messages):
    return await Held()


class Guarded:
    """A breaker in front of an engine whose responses the test controls."""

    def __init__(self):
        self.now = 1_000.0
        self.engine = FakeEngine(hold)
        self.breaker = Replica(
            "the engine at http://there", self.engine, concurrency=1_000, clock=lambda: self.now
        )

    def ask(self):
        """A request that reached the engine; raises the EngineError otherwise."""
        request = self.breaker.complete(REQUEST)
        request.send(None)
        return request

    def pause(self):
        """The wait in the error of a rejected request."""
        with pytest.raises(EngineError, match="no requests for now") as caught:
            self.ask()
        assert (caught.value.kind, caught.value.retryable) == ("open", True)
        return caught.value.retry_after_seconds

    def fail(self, times=FAILURES, error=BROKEN[0]):
        for _ in range(times):
            fail(self.ask(), error)


def succeed(request):
    with pytest.raises(StopIteration) as ended:
        request.send("besa")
    assert ended.value.value.text == "besa"


def fail(request, error):
    with pytest.raises(type(error)) as ended:
        request.throw(error.with_traceback(None))
    assert ended.value is error


def named(error):
    return getattr(error, "kind", type(error).__name__)


@pytest.mark.parametrize("error", BROKEN, ids=named)
def test_consecutive_failures_open_the_breaker(error):
    guarded = Guarded()
    guarded.fail(FAILURES - 1, error)
    succeed(guarded.ask())
    guarded.fail(FAILURES - 1, error)
    assert guarded.breaker.state == "closed"
    guarded.fail(1, error)
    assert guarded.breaker.state == "open"
    asked = len(guarded.engine.requests)
    assert guarded.pause() == PAUSE
    assert len(guarded.engine.requests) == asked


@pytest.mark.parametrize("error", NOTHING_SAID, ids=named)
def test_errors_unrelated_to_the_engines_health_do_not_count(error):
    guarded = Guarded()
    guarded.fail(FAILURES - 1)
    guarded.fail(9, error)
    assert guarded.breaker.state == "closed"
    guarded.fail(1)
    assert guarded.breaker.state == "open"


def test_a_request_canceled_after_a_long_wait_counts_as_a_failure():
    guarded = Guarded()
    for _ in range(FAILURES):
        asked = guarded.ask()
        guarded.now += 30
        fail(asked, asyncio.CancelledError())
    assert guarded.breaker.state == "open"


def test_a_half_open_breaker_sends_one_probe():
    guarded = Guarded()
    guarded.fail()
    guarded.now += guarded.pause()
    assert guarded.breaker.state == "half-open"
    probe = guarded.ask()
    assert guarded.pause() == RETRY
    succeed(probe)
    assert guarded.breaker.state == "closed"


def probing():
    """A breaker with its first probe active, and the probe."""
    guarded = Guarded()
    guarded.fail()
    guarded.now += guarded.pause()
    return guarded, guarded.ask()


def test_a_slow_probe_does_not_prevent_a_second_probe():
    guarded, slow = probing()
    guarded.now += PROBE
    succeed(guarded.ask())
    assert guarded.breaker.state == "closed"
    fail(slow, BROKEN[1])
    guarded.fail(FAILURES - 1)
    assert guarded.breaker.state == "closed"


def test_a_success_of_an_earlier_request_does_not_close_an_open_breaker():
    guarded = Guarded()
    early = guarded.ask()
    guarded.fail()
    succeed(early)
    assert guarded.pause() == PAUSE


def test_a_slow_probe_that_succeeds_closes_the_breaker():
    guarded, slow = probing()
    guarded.now += 7 * PROBE
    succeed(slow)
    assert guarded.breaker.state == "closed"


def test_a_hanging_engine_gets_one_probe_per_probe_interval():
    guarded, probe = probing()
    probes = [probe]
    for _ in range(3):
        assert guarded.pause() == RETRY
        guarded.now += PROBE
        probes.append(guarded.ask())
    assert guarded.pause() == RETRY


def test_an_unreachable_engine_opens_the_breaker_at_once():
    down = EngineError("nobody listens")
    down.is_down = True
    guarded = Guarded()
    guarded.fail(1, down)
    assert guarded.breaker.state == "open"
    guarded.now += PAUSE
    guarded.fail(1)
    assert guarded.pause() == PAUSE


@pytest.mark.parametrize("error", NOTHING_SAID, ids=named)
def test_an_inconclusive_probe_lets_the_next_request_probe(error):
    guarded = Guarded()
    guarded.fail()
    guarded.now += guarded.pause()
    fail(guarded.ask(), error)
    assert guarded.breaker.state == "half-open"
    succeed(guarded.ask())
    assert guarded.breaker.state == "closed"


def test_opening_and_closing_a_breaker_is_logged_with_the_engines_name(caplog):
    caplog.set_level("INFO")
    guarded = Guarded()
    guarded.fail()
    guarded.now += PAUSE
    succeed(guarded.ask())
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    failed = "failed 5 times in a row and gets no requests for 5 s"
    assert told == [
        ("WARNING", f"the engine at http://there {failed}"),
        ("INFO", "the engine at http://there answers again"),
    ]


class AnyOrder(RuleBasedStateMachine):
    """Requests begin and end in any order, while time goes by."""

    requests = Bundle("requests")

    def __init__(self):
        super().__init__()
        self.guarded = Guarded()
        self.closed = True
        self.failures = 0
        self.until = 0.0
        self.probing_until = 0.0
        self.counted = set()  # requests whose ends mean something: none from another state
        self.asked = {}  # when

    @invariant()
    def the_state_is_the_models(self):
        waits = "open" if self.guarded.now < self.until else "half-open"
        assert self.guarded.breaker.state == ("closed" if self.closed else waits)

    @rule(seconds=st.sampled_from([0.125, 0.5, 2.0, PAUSE]))
    def wait(self, seconds):
        self.guarded.now += seconds

    @rule(target=requests)
    def ask(self):
        if self.closed or self.guarded.now >= max(self.until, self.probing_until):
            request = self.guarded.ask()
            self.counted.add(request)
            if not self.closed:
                self.probing_until = self.guarded.now + PROBE
            self.asked[request] = self.guarded.now
            return request
        left = self.until - self.guarded.now
        assert self.guarded.pause() == pytest.approx(left if left > 0 else RETRY)
        return multiple()

    @rule(request=consumes(requests))
    def succeed(self, request):
        succeed(request)
        if request in self.counted:
            self.counted.discard(request)
            self.failures = 0
            if not self.closed:
                self.closed, self.counted = True, set()
            self.probing_until = 0.0

    @rule(request=consumes(requests), error=st.sampled_from(BROKEN))
    def fail(self, request, error):
        fail(request, error)
        self._fails(request)

    @rule(request=consumes(requests), error=st.sampled_from(NOTHING_SAID))
    def say_nothing(self, request, error):
        fail(request, error)
        waited = self.guarded.now - self.asked[request]
        if isinstance(error, asyncio.CancelledError) and waited >= 30:  # it hangs
            self._fails(request)
        if request in self.counted:
            self.counted.discard(request)
            self.probing_until = 0.0

    def _fails(self, request):
        if request in self.counted:
            self.counted.discard(request)
            self.failures += 1
            self.probing_until = 0.0
            if not self.closed or self.failures == FAILURES:
                self._opens()

    def _opens(self):
        assert self.guarded.pause() == PAUSE
        self.closed, self.counted = False, set()
        self.until = self.guarded.now + PAUSE


TestAnyOrder = pytest.mark.compute(AnyOrder.TestCase)
TestAnyOrder.settings = settings(max_examples=40)

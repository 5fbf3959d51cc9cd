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

MESSAGES, SAMPLING = [{"role": "user", "content": "ls"}], Sampling()
REQUEST = CompletionRequest(MESSAGES, SAMPLING)
FAILURES, PAUSE, PROBE, RETRY = 5, 5.0, 10.0, 1.0
ENGINE_FAILURES = [EngineError("gone"), EngineError("late", kind="slow")]
UNRELATED_ERRORS = [
    EngineError("no", kind=kind)
    for kind in ("capacity", "refused", "context", "cut-off", "unparsable")
] + [InputError("wrong"), asyncio.CancelledError()]


class ManualFuture:
    """A future that the test resolves."""

    def __await__(self):
        return (yield)


async def hold(_messages):
    return await ManualFuture()


class BreakerHarness:
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
        with pytest.raises(EngineError, match="no requests for now") as error:
            self.ask()
        assert (error.value.kind, error.value.retryable) == ("open", True)
        return error.value.retry_after_seconds

    def fail(self, times=FAILURES, error=ENGINE_FAILURES[0]):
        for _ in range(times):
            fail(self.ask(), error)


def succeed(request):
    with pytest.raises(StopIteration) as error_info:
        request.send("besa")
    assert error_info.value.value.text == "besa"


def fail(request, error):
    with pytest.raises(type(error)) as error_info:
        request.throw(error.with_traceback(None))
    assert error_info.value is error


def error_name(error):
    return getattr(error, "kind", type(error).__name__)


@pytest.mark.parametrize("error", ENGINE_FAILURES, ids=error_name)
def test_consecutive_failures_open_the_breaker(error):
    harness = BreakerHarness()
    harness.fail(FAILURES - 1, error)
    succeed(harness.ask())
    harness.fail(FAILURES - 1, error)
    assert harness.breaker.state == "closed"
    harness.fail(1, error)
    assert harness.breaker.state == "open"
    num_requests = len(harness.engine.requests)
    assert harness.pause() == PAUSE
    assert len(harness.engine.requests) == num_requests


@pytest.mark.parametrize("error", UNRELATED_ERRORS, ids=error_name)
def test_errors_unrelated_to_the_engines_health_do_not_count(error):
    harness = BreakerHarness()
    harness.fail(FAILURES - 1)
    harness.fail(9, error)
    assert harness.breaker.state == "closed"
    harness.fail(1)
    assert harness.breaker.state == "open"


def test_a_request_canceled_after_a_long_wait_counts_as_a_failure():
    harness = BreakerHarness()
    for _ in range(FAILURES):
        request = harness.ask()
        harness.now += 30
        fail(request, asyncio.CancelledError())
    assert harness.breaker.state == "open"


def test_a_half_open_breaker_sends_one_probe():
    harness = BreakerHarness()
    harness.fail()
    harness.now += harness.pause()
    assert harness.breaker.state == "half-open"
    probe = harness.ask()
    assert harness.pause() == RETRY
    succeed(probe)
    assert harness.breaker.state == "closed"


def open_probe():
    """A breaker with its first probe active, and the probe."""
    harness = BreakerHarness()
    harness.fail()
    harness.now += harness.pause()
    return harness, harness.ask()


def test_a_slow_probe_does_not_prevent_a_second_probe():
    harness, slow_probe = open_probe()
    harness.now += PROBE
    succeed(harness.ask())
    assert harness.breaker.state == "closed"
    fail(slow_probe, ENGINE_FAILURES[1])
    harness.fail(FAILURES - 1)
    assert harness.breaker.state == "closed"


def test_a_success_of_an_earlier_request_does_not_close_an_open_breaker():
    harness = BreakerHarness()
    early_request = harness.ask()
    harness.fail()
    succeed(early_request)
    assert harness.pause() == PAUSE


def test_a_slow_probe_that_succeeds_closes_the_breaker():
    harness, slow_probe = open_probe()
    harness.now += 7 * PROBE
    succeed(slow_probe)
    assert harness.breaker.state == "closed"


def test_a_hanging_engine_gets_one_probe_per_probe_interval():
    harness, probe = open_probe()
    probes = [probe]
    for _ in range(3):
        assert harness.pause() == RETRY
        harness.now += PROBE
        probes.append(harness.ask())
    assert harness.pause() == RETRY


def test_an_unreachable_engine_opens_the_breaker_at_once():
    connection_error = EngineError("nobody listens")
    connection_error.is_down = True
    harness = BreakerHarness()
    harness.fail(1, connection_error)
    assert harness.breaker.state == "open"
    harness.now += PAUSE
    harness.fail(1)
    assert harness.pause() == PAUSE


@pytest.mark.parametrize("error", UNRELATED_ERRORS, ids=error_name)
def test_an_inconclusive_probe_lets_the_next_request_probe(error):
    harness = BreakerHarness()
    harness.fail()
    harness.now += harness.pause()
    fail(harness.ask(), error)
    assert harness.breaker.state == "half-open"
    succeed(harness.ask())
    assert harness.breaker.state == "closed"


def test_opening_and_closing_a_breaker_is_logged_with_the_engines_name(caplog):
    caplog.set_level("INFO")
    harness = BreakerHarness()
    harness.fail()
    harness.now += PAUSE
    succeed(harness.ask())
    entries = [(record.levelname, record.getMessage()) for record in caplog.records]
    failure = "failed 5 times in a row and gets no requests for 5 s"
    assert entries == [
        ("WARNING", f"the engine at http://there {failure}"),
        ("INFO", "the engine at http://there answers again"),
    ]


class AnyOrder(RuleBasedStateMachine):
    """Requests begin and end in any order while time passes."""

    requests = Bundle("requests")

    def __init__(self):
        super().__init__()
        self.guarded = BreakerHarness()
        self.closed = True
        self.failures = 0
        self.until = 0.0
        self.probing_until = 0.0
        self.counted = set()  # requests whose ends count: none from another state
        self.start_times = {}

    @invariant()
    def the_state_is_the_models(self):
        state = "open" if self.guarded.now < self.until else "half-open"
        assert self.guarded.breaker.state == ("closed" if self.closed else state)

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
            self.start_times[request] = self.guarded.now
            return request
        seconds = self.until - self.guarded.now
        assert self.guarded.pause() == pytest.approx(seconds if seconds > 0 else RETRY)
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

    @rule(request=consumes(requests), error=st.sampled_from(ENGINE_FAILURES))
    def fail(self, request, error):
        fail(request, error)
        self._fails(request)

    @rule(request=consumes(requests), error=st.sampled_from(UNRELATED_ERRORS))
    def say_nothing(self, request, error):
        fail(request, error)
        duration = self.guarded.now - self.start_times[request]
        if isinstance(error, asyncio.CancelledError) and duration >= 30:  # it hangs
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

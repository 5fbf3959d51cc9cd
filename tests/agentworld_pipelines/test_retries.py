"""Retries of a step by its own process, without waits between them."""

import pytest

from agentworld.errors import InputError, PipelineError, Preempted, StoreError
from agentworld_pipelines.retries import RETRIES, Retries, call_with_retries

pytestmark = pytest.mark.compute


class Step:
    """A step that raises each of these errors in turn, and then answers."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.attempts = 0

    def __call__(self, store, *, place=""):
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return f"{store}{place}"


@pytest.fixture
def placed_retries(monkeypatch):
    """The converted retries of a placement."""
    retries = Retries(times=2, wait_seconds=0)
    monkeypatch.setenv(RETRIES, retries.model_dump_json())
    return retries


@pytest.mark.usefixtures("placed_retries")
def test_a_retryable_error_is_retried_by_the_steps_own_process(capsys):
    step = Step(StoreError("the disk is gone"), PipelineError("its job failed", retryable=True))
    assert call_with_retries(step, "/store", place="/here") == "/store/here"
    assert step.attempts == 3
    first, second = capsys.readouterr().out.splitlines()
    assert first == "the disk is gone; retry 1 of 2 in 0 s"
    assert second == "its job failed; retry 2 of 2 in 0 s"


@pytest.mark.usefixtures("placed_retries")
def test_the_step_raises_the_error_of_the_last_attempt():
    step = Step(*(StoreError(f"failure {number}") for number in range(4)))
    with pytest.raises(StoreError, match="failure 2"):
        call_with_retries(step, "/store")
    assert step.attempts == 3


@pytest.mark.usefixtures("placed_retries")
@pytest.mark.parametrize(
    "error",
    [InputError("wrong"), PipelineError("no"), Preempted("told to end"), ValueError("ours")],
    ids=lambda error: type(error).__name__,
)
def test_a_non_retryable_error_ends_the_step_at_once(error):
    step = Step(error)
    with pytest.raises(type(error)):
        call_with_retries(step, "/store")
    assert step.attempts == 1


def test_without_retries_a_step_is_tried_once(monkeypatch):
    monkeypatch.delenv(RETRIES, raising=False)
    step = Step(StoreError("gone"))
    with pytest.raises(StoreError):
        call_with_retries(step, "/store")
    assert step.attempts == 1


def test_no_retry_begins_after_the_time_limit(monkeypatch):
    retries = Retries(times=1, wait_seconds=5, most_seconds=5)
    monkeypatch.setenv(RETRIES, retries.model_dump_json())
    step = Step(StoreError("gone"))
    with pytest.raises(StoreError):
        call_with_retries(step, "/store")
    assert step.attempts == 1


def test_an_invalid_retries_variable_is_named(monkeypatch):
    monkeypatch.setenv(RETRIES, '{"times": 0}')
    with pytest.raises(InputError, match=r"retries\.times"):
        call_with_retries(Step(), "/store")


def test_waits_grow_by_a_whole_factor():
    retries = Retries(times=3, wait_seconds=10, factor=3)
    assert [retries.wait_before(retry) for retry in (1, 2, 3)] == [10, 30, 90]

import asyncio

import pytest

from agentworld.errors import ClusterError
from agentworld_operator.periodic import every, retry
from fakes.virtual_time import run


def moments(seconds, **options):
    """The times of the calls of a work that fails the first time."""

    async def begin():
        loop, calls = asyncio.get_running_loop(), []

        async def work():
            calls.append(loop.time())
            if len(calls) == 1:
                raise ClusterError("gone")

        task = asyncio.create_task(every(10, work, **options))
        await asyncio.sleep(seconds)
        task.cancel()
        return calls

    return run(begin())


def test_work_is_repeated_whether_it_fails_or_not():
    assert moments(25) == [0, 10, 20]
    assert moments(25, at_once=False) == [10, 20]


def test_a_programming_error_ends_the_repetition():
    async def work():
        raise ValueError("a mistake of ours")

    with pytest.raises(ValueError, match="of ours"):
        run(every(10, work))


def test_temporary_failures_are_retried_and_permanent_failures_are_raised():
    errors = [ClusterError("gone"), ClusterError("busy", status=429)]

    async def work():
        if errors:
            raise errors.pop(0)
        return "done"

    assert run(retry(10, work)) == "done"
    errors.append(ClusterError("you may not", status=403))
    with pytest.raises(ClusterError, match="you may not"):
        run(retry(10, work))

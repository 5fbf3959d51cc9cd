"""Retries of requests that the service refuses temporarily."""

import asyncio
import logging
import random

from agentworld.errors import SimulatorError

_LONGEST_WAIT_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Repeats:
    """The retries of one request.

    An engine without a replica is retried until `start_seconds` have passed; any other refusal at
    most `attempts` times.
    """

    def __init__(self, attempts: int, start_seconds: float) -> None:
        self._attempts = attempts
        self._start_seconds = start_seconds
        self._attempt = 1
        self._start = asyncio.get_running_loop().time()

    async def wait(self, failure: SimulatorError) -> None:
        """Waits until the retry is due; raises the failure if there is no retry."""
        seconds = failure.retry_after_seconds
        if not failure.retryable or seconds is None:
            raise failure
        if failure.kind == "starting":
            self._check_start(failure, seconds)
        elif self._attempt == self._attempts:
            raise failure
        else:
            self._attempt += 1
        await asyncio.sleep(min(seconds, _LONGEST_WAIT_SECONDS) * random.uniform(1, 1.5))

    def _check_start(self, failure: SimulatorError, seconds: float) -> None:
        waited = asyncio.get_running_loop().time() - self._start
        remaining = self._start_seconds - waited - seconds
        if remaining < 0:
            raise failure
        _log.warning("%s; retrying for at most %.0f s more", failure, remaining)

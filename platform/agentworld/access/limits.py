"""A tenant's limits. Rates use token buckets that hold one minute's amount."""

import time
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from agentworld.errors import AccessError
from agentworld.records.base import Record

_Limit = Annotated[int, Field(gt=0, lt=2**53)] | None


class Limits(Record):
    """Null is no limit. Rates apply to each replica of the service, other limits to all of them."""

    open_runs: _Limit = None
    open_episodes: _Limit = None
    steps_per_minute: _Limit = None
    tokens_per_minute: _Limit = None
    """Tokens that the engine reads and writes, including cached ones."""
    bytes_per_minute: _Limit = None
    """Bytes of actions and observations, as stored."""


NO_LIMITS = Limits()


class Bucket:
    """A token bucket that refills at `per_minute`.

    The balance may become negative, because the usage of a step is known only after its answer. The
    bucket then refuses requests until its balance is at least 1 again.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._balance = float(per_minute)
        self._updated_at = clock()

    @property
    def wait_seconds(self) -> float:
        """Seconds until the next request may pass; 0 if it may pass now."""
        self._fill()
        return max(0.0, (1 - self._balance) * 60 / self._per_minute)

    def spend(self, amount: int) -> None:
        """Subtracts an amount, even if the balance becomes negative."""
        self._fill()
        self._balance -= amount

    def _fill(self) -> None:
        now = self._clock()
        added = (now - self._updated_at) * self._per_minute / 60
        self._balance, self._updated_at = min(self._per_minute, self._balance + added), now


class Rates:
    """The buckets of one tenant."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        per_minute = {
            "steps": limits.steps_per_minute,
            "tokens": limits.tokens_per_minute,
            "bytes": limits.bytes_per_minute,
        }
        self._buckets = {
            name: Bucket(limit, clock) for name, limit in per_minute.items() if limit is not None
        }

    @property
    def is_bounded(self) -> bool:
        """Whether any rate is limited."""
        return bool(self._buckets)

    def check(self, tenant: str) -> None:
        """Raises AccessError of kind `limit` if a bucket is empty."""
        for name, bucket in self._buckets.items():
            if wait := bucket.wait_seconds:
                raise AccessError(
                    f"tenant {tenant} has used its {name} of this minute; retry in {wait:.1f} s",
                    kind="limit",
                    retry_after_seconds=wait,
                )

    def take_step(self, tenant: str) -> None:
        """Counts a step if `check` raises nothing."""
        self.check(tenant)
        if steps := self._buckets.get("steps"):
            steps.spend(1)

    def charge(self, num_tokens: int, num_bytes: int) -> None:
        """Counts the usage of an answered step."""
        for name, amount in (("tokens", num_tokens), ("bytes", num_bytes)):
            if bucket := self._buckets.get(name):
                bucket.spend(amount)

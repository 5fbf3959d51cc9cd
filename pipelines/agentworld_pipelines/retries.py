"""Retries of a step: by the step's own process, and by Argo if it restarts pods.

Kubeflow Pipelines leaves retries to Argo. As installed (2.17), Argo does not restart a pod whose
process failed, so the process itself retries temporary errors.
"""

import gc
import time
from collections.abc import Callable
from typing import ParamSpec, Self, TypeVar

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import AgentworldError, Preempted
from agentworld.recipes.environment import from_environment
from agentworld.records.base import Record
from agentworld_pipelines.output import write_line

RETRIES = "AGENTWORLD_RETRIES"
"""The variable with the retries of a step's process, as JSON."""

WEEK_SECONDS = 7 * 24 * 3600

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class Retries(Record):
    """How often and when a step is retried; each attempt resumes."""

    times: int = Field(gt=0, le=100)
    wait_seconds: int = Field(60, ge=0)
    """Seconds before the first retry."""
    factor: int = Field(2, ge=1, le=10)
    """The ratio of each wait to the one before; Argo accepts only integers."""
    most_seconds: int = Field(WEEK_SECONDS, gt=0)
    """Seconds from the start of the first attempt, after which the step is ended.

    Kubeflow's default of an hour would leave no time for a retry of a long training.
    """

    def wait_before(self, retry: int) -> int:
        """The seconds before a retry; the first one is 1."""
        return int(self.wait_seconds * self.factor ** (retry - 1))

    @model_validator(mode="after")
    def _have_time(self) -> Self:
        waits = sum(self.wait_before(retry + 1) for retry in range(self.times))
        if waits > self.most_seconds:
            raise ValueError(
                f"the waits before {self.times} retries are {waits} seconds, more than most_seconds"
                f" ({self.most_seconds}); lower times, wait_seconds or factor"
            )
        return self


class RetrySettings(BaseSettings):
    """Set by AGENTWORLD_RETRIES."""

    model_config = SettingsConfigDict(env_prefix="AGENTWORLD_", env_ignore_empty=True, frozen=True)

    retries: Retries | None = None
    """How often to retry each step after an error that may pass, as a JSON object."""


def call_with_retries(
    step: Callable[_Arguments, _Answer], *arguments: _Arguments.args, **keywords: _Arguments.kwargs
) -> _Answer:
    """The step's result; repeats the call after temporary errors, as AGENTWORLD_RETRIES says.

    Raises the last error, and InputError for an invalid variable.
    """
    retries = from_environment(RetrySettings).retries
    until = time.monotonic() + (retries.most_seconds if retries else 0)
    retry = 1
    while True:
        try:
            return step(*arguments, **keywords)
        except AgentworldError as error:
            if retries is None or retry > retries.times or not _is_transient(error):
                raise
            wait = retries.wait_before(retry)
            if time.monotonic() + wait > until:
                raise
            write_line(f"{error}; retry {retry} of {retries.times} in {wait} s")
        gc.collect()  # otherwise the failed attempt's tensors stay on the device
        time.sleep(wait)
        retry += 1


def _is_transient(error: AgentworldError) -> bool:
    """Whether a retry can help; a process that a signal ends has no time for one."""
    return error.retryable and not isinstance(error, Preempted)

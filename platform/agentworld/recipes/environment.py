"""Reads a process's settings from environment variables."""

import sys
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsError

from agentworld.errors import AgentworldError, ClusterError, InputError
from agentworld.records.base import first_problem

_Settings = TypeVar("_Settings", bound=BaseSettings)


def from_environment(kind: type[_Settings]) -> _Settings:
    """Reads the settings; raises InputError naming the first wrong or missing variable."""
    try:
        return kind()
    except ValidationError as error:
        raise InputError(f"the environment is wrong at {first_problem(error)}") from error
    except SettingsError as error:  # not JSON; its cause may quote a secret
        raise InputError(f"the environment is wrong: {error}; give JSON") from None


def exit_status(work: Callable[[], object]) -> int:
    """The exit status of a process that does this work: 2 with one sentence for a user's mistake, 1
    with one sentence if a cluster failed and the process should be restarted.
    """
    try:
        work()
    except AgentworldError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1 if isinstance(error, ClusterError) else 2
    return 0

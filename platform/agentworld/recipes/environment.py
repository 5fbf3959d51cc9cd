"""What a process is told by its environment, or one sentence about what is wrong in it."""

import sys
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsError

from agentworld.errors import AgentworldError, ClusterError, InputError
from agentworld.records.base import first_problem

_Settings = TypeVar("_Settings", bound=BaseSettings)


def from_environment(kind: type[_Settings]) -> _Settings:
    """Raises InputError naming the first variable that is wrong or missing."""
    try:
        return kind()
    except ValidationError as error:
        raise InputError(f"the environment is wrong at {first_problem(error)}") from error
    except SettingsError as error:  # what is no JSON; its cause may quote a secret
        raise InputError(f"the environment is wrong: {error}; give JSON") from None


def exit_status(work: Callable[[], object]) -> int:
    """Of a process that does this: with one sentence 2 for what the user gave wrong, or 1 where a
    cluster kept it from its work and it is to begin anew.
    """
    try:
        work()
    except AgentworldError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1 if isinstance(error, ClusterError) else 2
    return 0

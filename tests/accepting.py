"""Whether a validator accepts a value."""

from collections.abc import Callable

from agentworld.errors import InputError


def accepts(check: Callable[..., object], *arguments: object) -> bool:
    """Whether it raises no InputError."""
    try:
        check(*arguments)
    except InputError:
        return False
    return True

"""Whether a validator accepts a value."""

from collections.abc import Callable

from agentworld.errors import InputError


def accepts(check: Callable[..., object], *arguments: object) -> bool:
    """Whether the check raises no InputError for these arguments."""
    try:
        check(*arguments)
    except InputError:
        return False
    return True

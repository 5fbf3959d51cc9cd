"""The tools of the shop's server, and the command line that starts it."""

import json
from functools import cache
from typing import Any

from agentworld.domains.package_text import read_text
from agentworld.domains.programs import PYTHON
from agentworld.errors import EnvironmentUnavailable
from agentworld.records.tool import Tools
from agentworld.rendering.tools import read_tool

_TOOLS = "tools.txt"


@cache
def listed_tools() -> list[dict[str, Any]]:
    """The tools in the form of MCP's `tools/list`."""
    return [json.loads(line) for line in read_text(__package__, _TOOLS).splitlines()]


@cache
def shop_tools() -> Tools:
    """The tools as records."""
    return tuple(map(read_tool, listed_tools()))


def shop_command() -> tuple[str, ...]:
    """The command line that starts the server of an empty shop.

    Raises EnvironmentUnavailable if a sandbox would have no Python.
    """
    python = PYTHON.find()
    if python is None:
        raise EnvironmentUnavailable(
            f"the shop's server needs python3 in one of {PYTHON.path}; install the package"
            f" {PYTHON.package}"
        )
    server, tools = read_text(__package__, "server.py"), read_text(__package__, _TOOLS)
    return (python, "-I", "-S", "-c", server, tools)

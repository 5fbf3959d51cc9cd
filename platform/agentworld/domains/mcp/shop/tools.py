"""The tools of the shop's server, and the command line that starts it."""

import json
import shutil
from functools import cache
from typing import Any

from agentworld.domains.package_text import read_text
from agentworld.errors import EnvironmentUnavailable
from agentworld.records.tool import Tools
from agentworld.rendering.tools import read_tool

_PYTHON_FOLDERS = "/usr/local/bin:/usr/bin"  # those that every sandbox has
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
    python = shutil.which("python3", path=_PYTHON_FOLDERS)
    if python is None:
        raise EnvironmentUnavailable(
            f"the shop's server needs python3 in one of {_PYTHON_FOLDERS}; install the package"
            " python3"
        )
    server, tools = read_text(__package__, "server.py"), read_text(__package__, _TOOLS)
    return (python, "-I", "-S", "-c", server, tools)

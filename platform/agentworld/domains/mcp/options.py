"""The options of MCP environments: which servers an episode has besides the default, the shop."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import Record, first_problem

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,32}$")]


class ServerOptions(Record):
    """An MCP server that is started by its command line."""

    command: str = Field(min_length=1)
    """The command line, with quotes as in a shell; its program is found in /usr/bin and /bin."""
    folders: tuple[Path, ...] = ()
    """Folders of this machine that the server may read, such as the folder of its packages."""

    @property
    def words(self) -> tuple[str, ...]:
        """The command line in words."""
        return tuple(shlex.split(self.command))


class McpOptions(Record):
    """Options of the domain's environments."""

    servers: dict[_Name, ServerOptions] = {}
    """Servers by name; all run in each episode. Without any, the shop runs."""


def read_options(options: Mapping[str, JsonValue]) -> McpOptions:
    """Reads the options of a recipe; raises InputError naming the first wrong option."""
    try:
        read = McpOptions.model_validate(dict(options))
        for server in read.servers.values():
            _ = server.words
    except ValidationError as error:
        raise InputError(
            f"the option of the MCP environments is wrong at {first_problem(error)}; correct it"
        ) from error
    except ValueError as error:
        raise InputError(
            f"a server's command line has an open quote ({error}); close it"
        ) from error
    return read

"""The options of MCP environments: which servers an episode has besides the default, the shop."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import JsonValue, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agentworld.domains.base import Call
from agentworld.errors import InputError
from agentworld.records.base import JsonObject, Record, first_problem

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,32}$")]


class CallOptions(Record):
    """A call of a tool."""

    name: str
    arguments: JsonObject = {}

    @property
    def call(self) -> Call:
        """The call."""
        return Call(self.name, self.arguments)


class ServerOptions(Record):
    """An MCP server that is started by its command line, or reached at its address."""

    command: str = ""
    """The command line, with quotes as in a shell; its program is found in /usr/bin and /bin."""
    url: str = ""
    """The address of a server that speaks streamable HTTP, instead of a command line."""
    headers: dict[str, str] = {}
    """Headers of the requests to `url`. For each header, the name of the environment variable with
    its value; the variable with `_FILE` after its name can name a file with the value."""
    folders: tuple[Path, ...] = ()
    """Folders of this machine that the server may read, such as the folder of its packages."""
    state: tuple[CallOptions, ...] = ()
    """Calls that show the server's state and do not change it."""
    reset: tuple[CallOptions, ...] | None = None
    """Calls that restore the state of a fresh server, none if nothing changes it; null if only a
    new process has that state. A server at an address needs it."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise _refusal("a server has either a command or a url; set one of them")
        if self.url:
            _check_url(self.url)
            if self.reset is None:
                raise _refusal(
                    "a server at a url keeps its state from one episode to the next; set reset to"
                    " the calls that restore it, or to [] if no call changes it"
                )
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The command line in words."""
        return tuple(shlex.split(self.command))


class McpOptions(Record):
    """Options of the domain's environments."""

    servers: dict[_Name, ServerOptions] = {}
    """Servers by name; all run in each episode. Without any, the shop runs."""


def header_values(options: ServerOptions) -> dict[str, str]:
    """The headers with their values; raises InputError for a variable without a value."""
    return {header: _secret(variable) for header, variable in options.headers.items()}


def _secret(variable: str) -> str:
    file = os.environ.get(f"{variable}_FILE", "")
    try:
        value = (Path(file).read_text() if file else os.environ.get(variable, "")).strip()
    except (OSError, ValueError) as error:
        raise InputError(
            f"the file in {variable}_FILE cannot be read ({type(error).__name__}); correct its name"
        ) from error
    if not value:
        raise InputError(f"{variable} has no value for a header of an MCP server; set it")
    if not (value.isascii() and value.isprintable()):  # later errors would show the value
        raise InputError(f"{variable} has a character that no header can have; correct its value")
    return value


def _refusal(problem: str) -> PydanticCustomError:
    """Without the values of the options, because a url may hold a secret."""
    return PydanticCustomError("environment", "{problem}", {"problem": problem})


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _refusal("a server's url starts with http:// or https:// and has a host")
    if "@" in parts.netloc:
        raise _refusal("a server's url has a credential; set a header instead")


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

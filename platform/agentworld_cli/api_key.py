"""API keys, which authenticate callers to a service."""

import json
import sys
from typing import Annotated

import typer

from agentworld_cli.show import Json, show_json

app = typer.Typer(
    help="Create API keys, which authenticate callers to a service.", no_args_is_help=True
)

_Roles = Annotated[
    list[str],
    typer.Option(
        "--role", metavar="agent|operator|auditor", help="What the key may do; repeatable."
    ),
]


@app.command()
def new(
    roles: _Roles = ["agent"],  # noqa: B006 - typer reads it and changes nothing
    as_json: Json = False,
) -> None:
    """Create an API key: prints the key, and to stderr the lines for the access file.

    The key is stored nowhere: if you lose it, create another one. A command that calls a service
    takes it from the variable AGENTWORLD_CREDENTIAL.
    """
    from agentworld.access.base import ROLES
    from agentworld.access.key import key_digest, new_key
    from agentworld.errors import InputError

    for unknown in set(roles) - ROLES:
        raise InputError(f"{unknown!r} is not a role; give agent, operator or auditor")
    key = new_key()
    entry = {"sha256": key_digest(key), "roles": list(dict.fromkeys(roles))}
    if as_json:
        show_json({"key": key, **entry})
        return
    print(key)
    sys.stderr.write("".join(f"{name}: {json.dumps(value)}\n" for name, value in entry.items()))

"""API keys: what opens a service whose access file names them."""

import json
import sys
from typing import Annotated

import typer

from agentworld_cli.show import Json, show_json

app = typer.Typer(help="Keys that open a service.", no_args_is_help=True)

_Roles = Annotated[
    list[str],
    typer.Option("--role", metavar="agent|operator|auditor", help="What it is for; several times."),
]


@app.command()
def new(
    roles: _Roles = ["agent"],  # noqa: B006 - typer reads it and changes nothing
    as_json: Json = False,
) -> None:
    """Print a new API key, this once, and to stderr what an access file says of it.

    The key itself is kept nowhere: who loses it makes another one.
    """
    from agentworld.access.base import ROLES
    from agentworld.access.key import key_digest, new_key
    from agentworld.errors import InputError

    for unknown in set(roles) - ROLES:
        raise InputError(f"{unknown!r} is no role; give agent, operator or auditor")
    key = new_key()
    entry = {"sha256": key_digest(key), "roles": list(dict.fromkeys(roles))}
    if as_json:
        show_json({"key": key, **entry})
        return
    print(key)
    sys.stderr.write("".join(f"{name}: {json.dumps(value)}\n" for name, value in entry.items()))

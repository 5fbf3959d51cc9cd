"""Keys: which ones a store trusts, and a new signer in place of the current one."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from agentworld_cli.show import DEFAULT_STORE, Json, Store, show_json

app = typer.Typer(help="Keys that sign.", no_args_is_help=True)

_Whose = Annotated[
    Literal["simulator", "steps"],
    typer.Argument(help="Those that sign the logs of runs, or the weights that runs made."),
]


@app.command("list")
def list_(whose: _Whose = "simulator", store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Print the keys whose signatures verify, and which one signs."""
    from agentworld.operations.keys import keys_of

    keys = keys_of(Path(store), whose)
    if as_json:
        print(json.dumps([each.model_dump(mode="json") for each in keys], indent=2))
        return
    for each in keys:
        print(f"{each.key}  {'signs' if each.signs else 'verifies'}")


@app.command()
def rotate(
    whose: _Whose = "simulator", store: Store = DEFAULT_STORE, as_json: Json = False
) -> None:
    """Let a new key sign, and print its id; what the others signed verifies as before.

    A running service that reads these keys follows at its next checkpoint.
    """
    from agentworld.operations.keys import rotate_key

    key = rotate_key(Path(store), whose)
    if as_json:
        show_json(key)
    else:
        print(key.key)

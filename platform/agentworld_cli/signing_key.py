"""Signing keys: the trusted keys of a store, and their rotation."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from agentworld_cli.show import DEFAULT_STORE, Json, Store, show_json

app = typer.Typer(
    help="List and rotate the keys that sign logs of runs and trained weights.",
    no_args_is_help=True,
)

_Owner = Annotated[
    Literal["simulator", "steps"],
    typer.Argument(
        help="simulator: keys that sign the logs of runs; steps: keys that sign trained weights."
    ),
]


@app.command("list")
def list_(owner: _Owner = "simulator", store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the trusted keys, and which of them signs now."""
    from agentworld.operations.ledger import keys_of

    keys = keys_of(Path(store), owner)
    if as_json:
        print(json.dumps([key.model_dump(mode="json") for key in keys], indent=2))
        return
    for key in keys:
        print(f"{key.key}  {'signs' if key.signs else 'verifies'}")


@app.command()
def rotate(
    owner: _Owner = "simulator", store: Store = DEFAULT_STORE, as_json: Json = False
) -> None:
    """Create a new key that signs from now on, and print its id; old signatures stay valid.

    A running service signs with the new key from its next checkpoint on.
    """
    from agentworld.operations.ledger import rotate_key

    key = rotate_key(Path(store), owner)
    if as_json:
        show_json(key)
    else:
        print(key.key)

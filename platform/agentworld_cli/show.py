"""Printing a result: as JSON for machines, as a table or a tree for people."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console

from agentworld.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RecipeName = Annotated[
    str, typer.Option(help="A recipe's file, or a name that `agentworld recipe list` prints.")
]


def plain(text: str) -> str:
    """One line of printable characters; the others are written as Python writes them.

    A simulator may say anything: a control sequence that clears the screen, hides a line, or
    writes the clipboard. In a terminal it is shown and does nothing.
    """
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _folder(store: str) -> str:
    if "://" in store:
        raise InputError(
            f"{store} is in a bucket, and this command needs a folder; the commands of steps and"
            " `pipeline` take a bucket"
        )
    return store


def _existing(store: str) -> str:
    if not Path(_folder(store)).is_dir():
        raise InputError(f"there is no store {store}; name another one with --store")
    return store


def check_digest(text: str | None) -> str | None:
    """The callback of an option that takes a whole digest."""
    from pydantic import TypeAdapter, ValidationError

    from agentworld.records.base import Digest

    try:
        return TypeAdapter(Digest | None).validate_python(text)
    except ValidationError as error:
        raise InputError(
            f"{text!r} is no digest; give sha256: and 64 hexadecimal digits"
        ) from error


ExistingStore = Annotated[
    str, typer.Option(callback=_existing, help="The folder of steps, registry and ledger.")
]
Store = Annotated[
    str, typer.Option(callback=_folder, help="The folder of steps, registry and ledger.")
]
AnyStore = Annotated[str, typer.Option(help="The folder of steps, or its URL in a bucket.")]
AnyExistingStore = Annotated[
    str,
    typer.Option(
        callback=lambda store: store if "://" in store else _existing(store),
        help="The folder of steps, or its URL in a bucket.",
    ),
]

DEFAULT_RECIPE = "demo"
DEFAULT_STORE = "demo-output/demo"

console = Console(highlight=False)
trees = Console(width=max(console.width, 120), highlight=False)
"""Never cuts a digest off; a narrower terminal wraps by itself."""


def show_json(value: object) -> None:
    """Printable ASCII: what is meant for a machine is seen by people too."""
    print(json.dumps(to_jsonable_python(value), indent=2).replace("\x7f", r"\u007f"))


def show_record(record: BaseModel, *, as_json: bool) -> None:
    """A record's fields, one in a line."""
    if as_json:
        show_json(record)
        return
    for name, value in _flat(record.model_dump(mode="json")):
        print(f"{plain(name):<32} {to_words(value)}")


def to_words(value: object) -> str:
    """A leaf of a record; a text as Python writes it, also where it stands in a list."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
    return repr(value)


def show_step(step: Callable[..., str], *arguments: object, as_json: bool) -> str:
    """Runs a step, prints its folder, as the next command takes it, and returns it.

    What libraries print while they work goes to stderr, so that stdout holds the result alone.
    """
    with redirect_stdout(sys.stderr):
        folder = step(*arguments)
    print(json.dumps({"folder": folder}) if as_json else plain(folder))
    return folder


def brief(digest: str | None) -> str:
    """A digest that a person can compare."""
    return digest[:19] if digest else "-"


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a tree, by their path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value

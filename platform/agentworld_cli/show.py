"""Prints results: as JSON for programs, as a table or a tree for people.

Also the options that audits share, and the printing of findings.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console

from agentworld.errors import EvidenceError, InputError

if TYPE_CHECKING:
    from agentworld.audit.checks.edges import EdgeAudit
    from agentworld.audit.checks.ledger import Verification
    from agentworld.audit.read.evidence import Finding
    from agentworld.audit.read.sources import Sources
    from agentworld.records.run import AgentRun

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RecipeName = Annotated[
    str, typer.Option(help="A recipe's file, or a name that `agentworld recipe list` prints.")
]


def plain(text: str) -> str:
    """One line of printable characters; others are escaped as in Python.

    A simulator's text may contain control sequences that clear the screen, hide a line, or write
    the clipboard. Escaped, they have no effect.
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
    """The callback of an option for a complete digest."""
    from pydantic import TypeAdapter, ValidationError

    from agentworld.records.base import Digest

    try:
        return TypeAdapter(Digest | None).validate_python(text)
    except ValidationError as error:
        raise InputError(
            f"{text!r} is not a digest; give sha256: and 64 hexadecimal digits"
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
At = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="A time in the past, as 2026-03-01 or 2026-03-01T12:00+02:00."
    ),
]

DEFAULT_RECIPE = "demo"
DEFAULT_STORE = "demo-output/demo"

console = Console(highlight=False)
trees = Console(width=max(console.width, 120), highlight=False)
"""Never truncates a digest; a narrower terminal wraps."""


def show_json(value: object) -> None:
    """Prints ASCII JSON, because people may read the output, too."""
    print(json.dumps(to_jsonable_python(value), indent=2).replace("\x7f", r"\u007f"))


def show_record(record: BaseModel, *, as_json: bool) -> None:
    """Prints a record's fields, one on each line."""
    if as_json:
        show_json(record)
        return
    for name, value in _flat(record.model_dump(mode="json")):
        print(f"{plain(name):<32} {to_words(value)}")


def to_words(value: object) -> str:
    """A leaf of a record; a text is quoted as in Python."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
    return repr(value)


def show_step(step: Callable[..., str], *arguments: object, as_json: bool) -> str:
    """Runs a step, prints its folder, which the next command takes as input, and returns it.

    Output of libraries goes to stderr, so that stdout only has the result.
    """
    with redirect_stdout(sys.stderr):
        folder = step(*arguments)
    print(json.dumps({"folder": folder}) if as_json else plain(folder))
    return folder


def brief(digest: str | None) -> str:
    """A shortened digest for people."""
    return digest[:19] if digest else "-"


def sources_at(store: str, at: str) -> "Sources":
    """The sources of a store, now or as of a time; raises InputError for an invalid store."""
    from agentworld.audit.questions.alias import moment
    from agentworld.operations.ledger import open_sources

    at_time = moment(at, datetime.now(UTC)) if at else None
    return open_sources(Path(store)).as_of(at_time)


def format_moment(at: str | None) -> str:
    """The suffix of a heading."""
    return f" at {at}" if at else ""


def show_finding(finding: "Finding", *, as_json: bool) -> None:
    """Prints a finding; raises EvidenceError if the record is broken."""
    if as_json:
        show_record(finding, as_json=True)
    else:
        fields = finding.model_dump(mode="json", exclude={"problems", "notes"})
        lines = [
            *fields.items(),
            *(("note", note) for note in finding.notes),
            *(("problem", problem) for problem in finding.problems),
        ]
        for name, value in lines:
            print(f"{name:<32} {plain(str(value))}")
    check_none("the record does not match its signature", finding.problems)


def show_everything(verification: "Verification", *, as_json: bool) -> None:
    """Prints each problem and the number of checked records; raises EvidenceError if there is a
    problem.
    """
    if as_json:
        show_record(verification, as_json=True)
    else:
        for problem in verification.problems:
            print(plain(problem))
        runs = count_noun(len(verification.runs), "run")
        versions = count_noun(len(verification.versions), "version")
        problems = count_noun(len(verification.problems), "problem")
        subject = f"{runs} and {versions}{format_moment(verification.at)}"
        print(f"{subject}, of which {verification.num_unsigned} unsigned; {problems}")
    check_none("what is there is not what was signed", verification.problems)


def check_none(verdict: str, problems: Sequence[str]) -> None:
    """Raises EvidenceError if there are problems, which are printed already."""
    if problems:
        raise EvidenceError(f"{verdict}; its problems ({len(problems)}) are printed above")


def count_noun(num: int, noun: str) -> str:
    """A number with its noun in the singular or plural."""
    return f"{num:,} {noun}{'' if num == 1 else 's'}"


def by_how_much(run: "AgentRun", edge: "EdgeAudit | None") -> str:
    """The number of steps in a simulator, with those that forks copied, as far as it was signed."""
    counts = (
        f"{count_noun(run.num_episodes, 'episode')}, {count_noun(run.num_steps, 'step')} served"
    )
    num_copied = edge.num_copied if edge else 0
    return f"{counts}, {count_noun(num_copied, 'step')} copied by forks" if num_copied else counts


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a tree, by their path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value

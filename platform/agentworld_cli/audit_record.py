"""The auditor's questions of a whole record: is it what was signed, what is in it, what is gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentworld.errors import InputError
from agentworld_cli.alias import user_name
from agentworld_cli.moment import At, sources_at
from agentworld_cli.plain import plain
from agentworld_cli.show import DEFAULT_STORE, Json, Store, show_json
from agentworld_cli.verification import show_everything

if TYPE_CHECKING:
    from agentworld.audit.read.sources import Sources

_Form = Literal["in-toto", "csv", "openlineage", "cyclonedx"]
_Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="The reason, without which nothing is declared.")
]


def verify(
    version: Annotated[
        str,
        typer.Argument(
            metavar="[NAME@VERSION]", help="Verify what made one agent; else everything."
        ),
    ] = "",
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Check that runs and versions are what was signed, and do not contradict each other.

    With --at, those that were there then, and what was signed by then. They are checked as they
    are now, and so is what does not tell since when it is there.
    """
    from agentworld.audit.checks.store import verify_agent, verify_everything
    from agentworld.lineage.base import VersionRef
    from agentworld_cli.views import show_progress

    sources = sources_at(store, at)
    with show_progress("verify") as on_progress:
        if version:
            verification = verify_agent(VersionRef.parse(version), sources, on_progress)
        else:
            verification = verify_everything(sources, on_progress)
    show_everything(verification, as_json=as_json)


def export(
    form: Annotated[_Form, typer.Option("--format", help="The format to write.")],
    version: Annotated[
        str, typer.Argument(metavar="[NAME@VERSION]", help="The agent of a bill of materials.")
    ] = "",
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The file to write; else it is printed.")
    ] = "",
    sign: Annotated[
        bool, typer.Option("--sign", help="A bill of materials as a signed in-toto statement.")
    ] = False,
    at: At = "",
    store: Store = DEFAULT_STORE,
) -> None:
    """Write which simulator trained which agent: signed statements, a table, or run events; or
    one agent's AI bill of materials (cyclonedx).

    With --at, what was there then.
    """
    sources = sources_at(store, at)  # where MLflow is, OpenLineage is
    from agentworld.audit.export.formats import lines_of
    from agentworld.records.file import write_whole

    if form == "cyclonedx":
        lines = _bill_lines(version, sources, sign=sign)
    elif version or sign:
        raise InputError(
            f"--format {form} is of all agents, as they were signed; leave out NAME@VERSION and"
            " --sign, or write --format cyclonedx"
        )
    else:
        lines = lines_of(form, sources)
    if out:
        write_whole(Path(out), "".join(f"{line}\n" for line in lines).encode())
        return
    for line in lines:
        print(plain(line))


def _bill_lines(version: str, sources: "Sources", *, sign: bool) -> Iterator[str]:
    from agentworld.lineage.base import VersionRef
    from agentworld.operations.bill_of_materials import bill_as_text, signed_bill

    if not version:
        raise InputError(
            "a bill of materials is of one agent; name it, as in"
            " `audit export shell-agent@1 --format cyclonedx`"
        )
    ref = VersionRef.parse(version)
    return iter((signed_bill if sign else bill_as_text)(ref, sources).splitlines())


def restored(
    reason: _Reason = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print what a restored backup of the ledger lost, and declare it with --reason.

    Runs that lost entries cannot go on from then on, and verify as far as the backup has them.
    """
    from agentworld.operations.declarations import declare_restored as declare

    losses = declare(Path(store), reason, user_name())
    if as_json:
        show_json(losses)
        return
    for run, names in losses.runs.items():
        print(f"run {plain(run)} lost entries of its log, or is gone:")
        print(*(f"  {plain(name)}" for name in names), sep="\n")
    for name in losses.others:
        print(f"lost {plain(name)}")
    whole = not losses.runs and not losses.others
    print("the ledger has all that was signed" if whole else _describe_outcome(reason))


def withdrawn(
    versions: Annotated[
        list[str] | None, typer.Argument(metavar="NAME@VERSION", help="One version; else all.")
    ] = None,
    reason: _Reason = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the registered versions that MLflow has no more, and declare with --reason that people
    deleted them.

    From then on `audit verify` does not miss them. Restore what nobody wanted to delete.
    """
    from agentworld.operations.declarations import declare_withdrawn as declare

    withdrawals = declare(Path(store), versions or (), reason, user_name())
    if as_json:
        show_json(withdrawals)
        return
    for version in withdrawals.versions:
        print(plain(f"{version.ref} {version.artifact}, registered on {version.at}, is gone"))
    print(
        _describe_outcome(reason)
        if withdrawals.versions
        else "the registry has all that was signed as registered"
    )


def _describe_outcome(reason: str) -> str:
    return "declared" if reason else "nothing is declared; add --reason"

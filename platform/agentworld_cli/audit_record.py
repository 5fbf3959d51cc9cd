"""Audit commands of a whole record: verify it, export it, record losses and deletions; and the
target of an alias.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentworld.errors import EvidenceError, InputError
from agentworld_cli.alias import describe_change, user_name
from agentworld_cli.show import (
    DEFAULT_STORE,
    At,
    Json,
    Store,
    plain,
    show_everything,
    show_json,
    sources_at,
)

if TYPE_CHECKING:
    from agentworld.audit.read.sources import Sources

_Form = Literal["in-toto", "csv", "openlineage", "cyclonedx"]
_Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="The reason; without it the command records nothing.")
]


def alias(
    name: Annotated[str, typer.Argument(metavar="ALIAS", help="Or NAME@ALIAS, of an agent.")],
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show what an alias pointed at at a given time, and who set it and moved it next."""
    from agentworld.audit.questions.alias import audit_alias, moment
    from agentworld.operations.simulators import alias_history

    now = datetime.now(UTC)
    at_time = moment(at, now) if at else now
    audit = audit_alias(name, alias_history(Path(store), name), at_time)
    if as_json:
        show_json(audit)
    else:
        print(f"{plain(name)} at {audit.at}: {audit.target or 'nothing'}")
        changes = (("by", audit.since), ("until", audit.until))
        print(
            *(f"{word}  {describe_change(change)}" for word, change in changes if change), sep="\n"
        )
    _check_names(Path(store), as_json=as_json)


def verify(
    version: Annotated[
        str,
        typer.Argument(
            metavar="[NAME@VERSION]", help="Verify one agent and its lineage; else everything."
        ),
    ] = "",
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Check that all runs and versions match their signatures and each other.

    With --at, the command checks the runs and versions that existed at that time, as they are now.
    It also checks records that have no date.
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
        str, typer.Argument(metavar="[NAME@VERSION]", help="The agent, for --format cyclonedx.")
    ] = "",
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The file to write; else the command prints.")
    ] = "",
    sign: Annotated[
        bool,
        typer.Option("--sign", help="With --format cyclonedx: write a signed in-toto statement."),
    ] = False,
    at: At = "",
    store: Store = DEFAULT_STORE,
) -> None:
    """Write which simulator trained which agent, for other tools.

    Formats: in-toto (signed statements), csv (a table), openlineage (run events), cyclonedx (the
    AI bill of materials of one agent). With --at, the state at that time.
    """
    sources = sources_at(store, at)  # OpenLineage needs MLflow's address
    from agentworld.audit.export.formats import lines_of
    from agentworld.records.file import write_whole

    if form == "cyclonedx":
        lines = _bill_lines(version, sources, sign=sign)
    elif version or sign:
        raise InputError(
            f"--format {form} writes all agents as they were signed; leave out NAME@VERSION and"
            " --sign, or use --format cyclonedx"
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
            "a bill of materials describes one agent; name it, as in"
            " `audit export shell-agent@1 --format cyclonedx`"
        )
    ref = VersionRef.parse(version)
    return iter((signed_bill if sign else bill_as_text)(ref, sources).splitlines())


def restored(
    reason: _Reason = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print what a restored backup of the ledger lost; with --reason, record the loss.

    Run this after you restored a backup; otherwise `audit verify` reports the loss as tampering.
    Once the loss is recorded, a run that lost entries takes no more steps, and `audit verify`
    checks it as far as the backup has it.
    """
    from agentworld.operations.declarations import declare_restored as declare

    losses = declare(Path(store), reason, user_name())
    if as_json:
        show_json(losses)
        return
    for run, names in losses.runs.items():
        print(f"run {plain(run)} lost entries of its log, or is missing:")
        print(*(f"  {plain(name)}" for name in names), sep="\n")
    for name in losses.others:
        print(f"lost {plain(name)}")
    whole = not losses.runs and not losses.others
    print("the ledger has all that was signed" if whole else _describe_outcome(reason))


def withdrawn(
    versions: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME@VERSION", help="Only these versions; else all."),
    ] = None,
    reason: _Reason = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print registered versions that are missing in MLflow; with --reason, record their deletion.

    Run this after you deleted versions on purpose; otherwise `audit verify` reports them as
    missing. If the deletion was a mistake, restore the versions in MLflow instead.
    """
    from agentworld.operations.declarations import declare_withdrawn as declare

    withdrawals = declare(Path(store), versions or (), reason, user_name())
    if as_json:
        show_json(withdrawals)
        return
    for version in withdrawals.versions:
        print(
            plain(
                f"{version.ref} {version.artifact}, registered on {version.at}, is missing in"
                " MLflow"
            )
        )
    print(
        _describe_outcome(reason)
        if withdrawals.versions
        else "the registry has all that was signed as registered"
    )


def _describe_outcome(reason: str) -> str:
    return "recorded" if reason else "nothing is recorded; add --reason TEXT to record it"


def _check_names(store: Path, *, as_json: bool) -> None:
    """Prints each problem of aliases' histories; raises EvidenceError if there are any."""
    from agentworld.audit.checks.alias_history import alias_problems
    from agentworld.operations.ledger import existing_ledger, has_keys, open_evidence

    ledger = existing_ledger(store)
    if not has_keys(store, ledger):
        return
    evidence = open_evidence(store, ledger)
    problems = [*alias_problems(ledger.aliases, ledger.attestations, evidence)]
    for problem in () if as_json else problems:
        print(plain(problem))
    if problems:
        raise EvidenceError("the history of names is not the one that was signed; restore it")

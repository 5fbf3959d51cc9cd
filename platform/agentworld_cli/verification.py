"""What audits share on the command line: their moment, and how a verdict is shown."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld.errors import EvidenceError
from agentworld_cli.show import plain, show_record

if TYPE_CHECKING:
    from agentworld.audit.checks.edges import EdgeAudit
    from agentworld.audit.checks.ledger import Verification
    from agentworld.audit.read.evidence import Finding
    from agentworld.audit.read.sources import Sources
    from agentworld.records.run import AgentRun


At = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="A time in the past, as 2026-03-01 or 2026-03-01T12:00+02:00."
    ),
]


def sources_at(store: str, at: str) -> "Sources":
    """What a store knows, or knew at a moment; raises InputError for what is none."""
    from agentworld.audit.questions.alias import moment
    from agentworld.operations.ledger import open_sources

    at_time = moment(at, datetime.now(UTC)) if at else None
    return open_sources(Path(store)).as_of(at_time)


def format_moment(at: str | None) -> str:
    """The end of a heading."""
    return f" at {at}" if at else ""


def show_finding(finding: "Finding", *, as_json: bool) -> None:
    """Prints what was found; raises EvidenceError where the record is broken."""
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
    check_none("the record is not the one that was signed", finding.problems)


def show_everything(verification: "Verification", *, as_json: bool) -> None:
    """A line for each problem, and how much was looked at; raises EvidenceError for any problem."""
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
    """Raises EvidenceError for any problems, which are printed already."""
    if problems:
        raise EvidenceError(f"{verdict}; its problems ({len(problems)}) are printed above")


def check_names(store: Path, *, as_json: bool) -> None:
    """A line for each problem of names' histories; raises EvidenceError for any."""
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


def count_noun(num: int, noun: str) -> str:
    """As people say it."""
    return f"{num:,} {noun}{'' if num == 1 else 's'}"


def by_how_much(run: "AgentRun", edge: "EdgeAudit | None") -> str:
    """By how much a simulator touched a run, and what came with forks as far as it was signed."""
    counts = (
        f"{count_noun(run.num_episodes, 'episode')}, {count_noun(run.num_steps, 'step')} served"
    )
    num_copied = edge.num_copied if edge else 0
    return f"{counts}, {count_noun(num_copied, 'step')} copied by forks" if num_copied else counts

"""Reads a store's recorded episodes as the lines that `data import` accepts.

Live episodes are in the folders of validations. A validation's report has their digests and is
signed by its step; the audit's check compares it with the report in the folder.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from agentworld.audit.checks.statements import validations
from agentworld.audit.checks.validation import read_report, validation_problem
from agentworld.data.importers.ledger import LedgerLine
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.operations.ledger import existing_ledger, has_keys, open_evidence
from agentworld.records.base import digest_file
from agentworld.records.report import AgentReport
from agentworld.records.statements.validation import Validation
from agentworld.storage.receipts import FinishedStep, finished_steps
from agentworld.storage.trajectories import read_trajectories

_STEP = "validate"


def read_lines(address: str) -> Iterator[bytes]:
    """A line of JSON for each live episode of the store in a folder, and for each run of its
    ledger. Raises InputError if there is neither a validation nor a ledger.
    """
    store = Path(address)
    signed = list[Validation]()
    steps = sorted(finished_steps(store, _STEP), key=lambda step: step.folder.name)
    try:
        with closing(existing_ledger(store)) as ledger:
            if has_keys(store, ledger):
                signed = validations(ledger.attestations, open_evidence(store, ledger))
            lines = [*_runs(ledger)]
    except NotFound as error:
        if not steps:
            raise InputError(f"{address} is not a store: {error}") from error
        lines = []
    for step in steps:
        own = [statement for statement in signed if statement.step == step.folder.name]
        for line in _live(store, step, own):
            yield _to_bytes(line)
    yield from map(_to_bytes, lines)


def _to_bytes(line: LedgerLine) -> bytes:
    return line.model_dump_json().encode() + b"\n"


def _runs(ledger: Ledger) -> Iterator[LedgerLine]:
    runs, problems = ledger.readable_runs()
    for run in sorted(runs, key=lambda run: run.id):
        place, episodes = f"run {run.id}", run.num_episodes
        yield LedgerLine(place=place, simulator=run.simulator, num_episodes=episodes)
    for problem in problems:
        yield LedgerLine(place="ledger", problem=problem)


def _live(store: Path, step: FinishedStep, signed: Sequence[Validation]) -> Iterator[LedgerLine]:
    """The episodes of a validation, or why none of them can be trusted."""
    place = f"validation {step.folder.name}"
    try:
        report = read_report(step)
    except EvidenceError as error:
        yield LedgerLine(place=place, problem=str(error))
        return
    if problem := validation_problem(store, step.folder.name, signed):
        yield LedgerLine(place=place, problem=problem)
        return
    if not report.live_episodes:
        problem = "its report names no file of live episodes; validate the agent again"
        yield LedgerLine(place=place, problem=problem)
    for name in report.live_episodes:
        yield from _episodes(step, report, name, place=f"{place} {name}", signed=bool(signed))


def _episodes(
    step: FinishedStep, report: AgentReport, name: str, *, place: str, signed: bool
) -> Iterator[LedgerLine]:
    file = step.folder / name
    if not file.is_file() or digest_file(file) != report.live_episodes[name]:
        yield LedgerLine(place=place, problem="it is not the file of the report; restore it")
        return
    for number, trajectory in enumerate(read_trajectories(file), 1):
        yield LedgerLine(place=f"{place} line {number}", trajectory=trajectory, signed=signed)

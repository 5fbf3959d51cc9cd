"""Checks that a run's log matches its signatures: nothing changed, left out or cut off.

Compares the run's row with the log's first and last entry, and the log with the checkpoints in the
ledger and in the evidence mirror. A restored old ledger lacks the newest of them.
"""

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from agentworld.audit.checks.losses import is_checkpoint, lost_of
from agentworld.audit.checks.mirror import check_statements, find_rows, verified_rows
from agentworld.audit.read.evidence import Evidence, Losses, check_checkpoints, copies_of
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.attestations import Attestations
from agentworld.records.base import Digest
from agentworld.records.episode import text_digest
from agentworld.records.garbled import reading
from agentworld.records.log import Fields, LogEntry, opening_problem, run_closed
from agentworld.records.run import AgentRun
from agentworld.records.statements.erasure import Erasure
from agentworld.signing.checkpoint import RunCheckpoint
from agentworld.signing.merkle import MerkleTree
from agentworld.signing.traffic import TrafficCount
from agentworld.signing.weights import closing_problem


class Erasures(NamedTuple):
    """The erasures that were declared in a run, or happened before declarations began."""

    run: str
    attestations: Attestations
    evidence: Evidence
    at_genesis: frozenset[str] | None
    """Episodes that were erased before; null if erasures are not signed."""
    declared: frozenset[str]
    problems: tuple[str, ...]

    @classmethod
    def of(
        cls, run: str, attestations: Attestations, losses: Losses, evidence: Evidence
    ) -> "Erasures":
        """The erasures of a run; call it before its episodes are read."""
        checked = check_statements(Erasure, attestations, evidence, of=run, lost=losses.names)
        problems = [*checked.problems]
        try:
            at_genesis = evidence.read_declarations(attestations).erased
        except EvidenceError as error:
            at_genesis = frozenset()  # its names then belong to no tenant
            problems.append(f"the genesis statement does not verify: {error}")
        declared = _episodes(checked.verified.values())
        return cls(run, attestations, evidence, at_genesis, declared, tuple(problems))

    def problem_of(self, episode: str, *, erased: bool) -> str | None:
        """The problem of an episode that was read with or without its texts."""
        if not erased:
            if episode in self.declared:
                return f"episode {episode} was erased, but its texts are present"
            return None
        if self.at_genesis is None or episode in self.at_genesis | self.declared:
            return None
        # It may have been erased just now.
        rows = find_rows(Erasure, self.attestations, self.run)
        declared = _episodes(verified_rows(rows, Erasure, self.evidence.of_now))
        return None if episode in declared else f"episode {episode} is erased without a declaration"


class SignedLog(NamedTuple):
    """A run's log with its problems."""

    run: AgentRun
    entry_fields: list[Fields]
    """The fields of its entries in their order; empty for an unreadable entry."""
    heads: dict[int, list[Digest]]
    """The heads of the run's steps, by the entry that covers them."""
    newest: int
    """The number of entries when all of this was read: the run may be in use."""
    signed_length: int
    """Entries that the newest valid checkpoint covers."""
    problems: list[str]
    erasures: Erasures
    """The declared erasures."""
    notes: tuple[str, ...]
    """Declared losses."""


def read_log(name: str, ledger: Ledger, evidence: Evidence) -> SignedLog:
    """Raises NotFound if the run does not exist, EvidenceError if it is missing or garbled."""
    with reading(f"the ledger's record of run {name}"):
        return _read(name, ledger, evidence)


def opening_entry(episode: str, ledger: Ledger) -> LogEntry | None:
    """The entry of a run's log that opens this episode; null without one."""
    for run in ledger.run_names():
        with suppress(InputError):  # not a valid run name
            openings = (entry for entry in ledger.logs.entries(run) if _opens(entry, episode))
            if entry := next(openings, None):
                return entry
    return None


def step_problems(log: SignedLog, entries: Container[int] | None = None) -> Iterator[str]:
    """Checks that each step is under one entry, and that every entry, or each of `entries`, has its
    own steps.
    """
    step_entries = {
        number: fields
        for number, fields in enumerate(log.entry_fields, 1)
        if fields.get("kind") == "steps"
    }
    for number in sorted(step_entries.keys() | log.heads.keys()):
        if len(log.entry_fields) < number <= log.newest or (
            entries is not None and number not in entries
        ):
            continue
        heads = log.heads.get(number, [])
        digest = text_digest("\n".join(heads))
        fields = step_entries.get(number, {})
        if (fields.get("num_steps"), fields.get("heads")) != (len(heads), digest):
            yield f"the {len(heads)} steps under entry {number} are not those that it names"


def _read(name: str, ledger: Ledger, evidence: Evidence) -> SignedLog:
    # In this order, what a service adds in the meantime is always in the second read.
    in_ledger, run = ledger.logs.checkpoints(name), _run(name, ledger, evidence)
    losses = lost_of(ledger.attestations, evidence, name)
    copies = _copies(name, losses, evidence)
    erasures = Erasures.of(name, ledger.attestations, losses, evidence)
    log, heads = ledger.logs.entries(name), ledger.logs.heads_by_entry(name)
    newest = ledger.run(name).log_length
    entry_fields = [entry.readable_fields for entry in log]
    checkpoints, unverified = check_checkpoints(run, in_ledger, copies, evidence.trusted)
    problems = [
        *unverified,
        *_length_problems(run, log, newest),
        *_order_problems(run, log, entry_fields),
        *filter(None, [opening_problem(run, entry_fields[0] if entry_fields else {})]),
        *_closing_problems(run, entry_fields, evidence),
        *_checkpoint_problems(checkpoints, log, entry_fields),
        *losses.problems,
        *erasures.problems,
    ]
    signed_length = max((checkpoint.length for checkpoint in checkpoints), default=0)
    return SignedLog(
        run, entry_fields, heads, newest, signed_length, problems, erasures, losses.notes
    )


def _run(name: str, ledger: Ledger, evidence: Evidence) -> AgentRun:
    try:
        return ledger.counted_run(name)
    except NotFound:
        # User input may be a path, which is not a run's name.
        if not name.isalnum():
            raise
        all_copies = _copies(name, lost_of(ledger.attestations, evidence, name), evidence)
        copies = list(filter(is_checkpoint, all_copies))
        if not copies:
            raise
        raise EvidenceError(
            f"run {name} is missing from the ledger, but the evidence mirror has {len(copies)}"
            " signed checkpoints of it; restore the ledger"
        ) from None


def _copies(run: str, losses: Losses, evidence: Evidence) -> dict[str, bytes]:
    """The copies that are not declared lost."""
    copies = copies_of(run, evidence.mirror)
    return {name: copy for name, copy in copies.items() if name not in losses.names}


def _opens(entry: LogEntry, episode: str) -> bool:
    fields = entry.readable_fields
    return (fields.get("kind"), fields.get("episode")) == ("episode-opened", episode)


def _length_problems(run: AgentRun, log: list[LogEntry], newest: int) -> Iterator[str]:
    if not run.log_length <= len(log) <= newest:
        yield f"the log has {len(log)} entries instead of {newest}"


def _order_problems(
    run: AgentRun, log: list[LogEntry], entry_fields: list[Fields]
) -> Iterator[str]:
    for number, (entry, fields) in enumerate(zip(log, entry_fields, strict=True), 1):
        if (entry.sequence, fields.get("sequence"), fields.get("run")) != (number, number, run.id):
            yield f"entry {number} of the log is missing, garbled or out of place"
            return


def _closing_problems(
    run: AgentRun, entry_fields: list[Fields], evidence: Evidence
) -> Iterator[str]:
    prefix = entry_fields[: run.log_length]
    closings = [fields for fields in prefix if fields.get("kind") == "run-closed"]
    if closings != (prefix[-1:] if run.closing else []):
        yield "the run's closing contradicts its log"
    if run.closing is None:
        return
    if closings and not run_closed(run.closing).items() <= closings[-1].items():
        yield "the run was not closed as the log says"
    if problem := closing_problem(run, evidence.step_keys or {}):
        yield problem


def _checkpoint_problems(
    checkpoints: list[RunCheckpoint], log: list[LogEntry], entry_fields: list[Fields]
) -> Iterator[str]:
    tree, traffic, pairs = MerkleTree(), TrafficCount(), zip(log, entry_fields, strict=True)
    for checkpoint in checkpoints:
        if checkpoint.length > len(log):
            yield (
                f"a checkpoint covers {checkpoint.length} entries, but the log has {len(log)}:"
                " its end is cut off, or an old ledger was restored"
            )
            return
        while len(tree) < checkpoint.length:
            entry, fields = next(pairs)
            tree.append(entry.body)
            traffic.add(fields)
        if tree.root != checkpoint.root:
            yield (
                f"the first {checkpoint.length} entries of the log are not those that were signed"
            )
            return
        if checkpoint.traffic != traffic.total:
            yield (
                f"the checkpoint of {checkpoint.length} entries states other traffic than the"
                " entries"
            )
            return


def _episodes(erasures: Iterable[Erasure]) -> frozenset[str]:
    return frozenset(erasure.episode for erasure in erasures)

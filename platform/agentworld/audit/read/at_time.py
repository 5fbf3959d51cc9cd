"""What was known at a moment: what came later is left out.

When something was registered is the registry's word, when something ran, the run's log's, and when
something was signed, the statement's. What does not tell its time counts as there.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from agentworld.errors import EvidenceError
from agentworld.ledger.logs import Logs
from agentworld.lineage.base import Registry, VersionRef
from agentworld.records.garbled import reading
from agentworld.records.log import Fields
from agentworld.records.run import AgentRun
from agentworld.records.statements.base import SignedRecord
from agentworld.signing.attestation import signed_at
from agentworld.signing.traffic import TrafficCount


def is_as_of(time: object, at: datetime | None) -> bool:
    """Whether a time that was told had come by a moment; all have by now."""
    try:
        return at is None or datetime.fromisoformat(str(time)) <= at
    except (ValueError, TypeError):
        return True


def is_signed_as_of(envelope: bytes, kind: type[SignedRecord] | None, at: datetime | None) -> bool:
    """The same of a statement of a kind, by its own words, whoever signed it."""
    if at is None or kind is None:
        return True
    try:
        return is_as_of(signed_at(envelope, kind), at)
    except EvidenceError:
        return True


def runs_as_of(names: Sequence[str], logs: Logs, at: datetime | None) -> list[str]:
    """Those that were open by then."""
    return [name for name in names if at is None or is_as_of(_opened_at(name, logs), at)]


def run_as_of(run: AgentRun, logs: Logs, at: datetime) -> AgentRun | None:
    """A run as it was; null where it was opened later.

    One whose log cannot be read is told as it is now: that log says of no moment.
    """
    try:
        with reading(f"the log of run {run.id}"):
            fields = [entry.fields for entry in logs.entries(run.id)]
            before = [entry for entry in fields if datetime.fromisoformat(str(entry["at"])) <= at]
    except EvidenceError:  # which a verification tells
        return run
    if fields and not before:
        return None
    return run if len(before) == len(fields) else _rebuild_run(run, before)


def refs_as_of(
    refs: Sequence[VersionRef], registry: Registry, at: datetime | None
) -> list[VersionRef]:
    """Those that were registered by then; all of them where no moment is named."""
    return [ref for ref in refs if at is None or registry.version(ref).at <= at]


def _opened_at(run: str, logs: Logs) -> str:
    with suppress(EvidenceError), reading(f"run {run}"):  # which a verification tells
        return str(logs.first_entry(run).get("at", ""))
    return ""


def _rebuild_run(run: AgentRun, fields: Sequence[Fields]) -> AgentRun:
    """By the entries that there were."""
    count = TrafficCount()
    for entry in fields:
        count.add(entry)
    changes = {
        "closing": run.closing if any(entry["kind"] == "run-closed" for entry in fields) else None,
        "num_episodes": count.total.num_episodes,
        "num_steps": count.total.num_steps,
        "log_length": len(fields),
    }
    return run.model_copy(update=changes)

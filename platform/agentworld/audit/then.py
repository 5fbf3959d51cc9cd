"""What was known at a moment: what came later is left out.

When something was registered is the registry's word, and when something ran, the run's log's.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from agentworld.evidence.traffic import TrafficCount
from agentworld.lineage.base import Registry, VersionRef
from agentworld.records.log import Fields, LogEntry
from agentworld.records.run import AgentRun


class Logs(Protocol):
    """What is asked of the ledger."""

    def log(self, run: str, after: int = 0) -> list[LogEntry]:
        """A run's log in its order."""
        ...


def run_then(run: AgentRun, logs: Logs, at: datetime) -> AgentRun | None:
    """A run as it was; null where it was opened later.

    One whose log cannot be read is told as it is now: that log says of no moment.
    """
    try:
        told = [entry.fields for entry in logs.log(run.id)]
        before = [each for each in told if datetime.fromisoformat(str(each["at"])) <= at]
    except (ValueError, TypeError, KeyError):
        return run
    if told and not before:
        return None
    return run if len(before) == len(told) else _as_told(run, before)


def refs_then(
    refs: Sequence[VersionRef], registry: Registry, at: datetime | None
) -> list[VersionRef]:
    """Those that were registered by then; all of them where no moment is named."""
    return [ref for ref in refs if at is None or registry.version(ref).at <= at]


def _as_told(run: AgentRun, told: Sequence[Fields]) -> AgentRun:
    """By the entries that there were."""
    count = TrafficCount()
    for each in told:
        count.add(each)
    changes = {
        "closing": run.closing if any(each["kind"] == "run-closed" for each in told) else None,
        "num_episodes": count.told.num_episodes,
        "num_steps": count.told.num_steps,
        "log_length": len(told),
    }
    return run.model_copy(update=changes)

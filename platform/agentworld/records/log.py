"""A run's log: its events, append-only, in an order that does not depend on clocks.

The log covers every step: an entry for each group of steps holds their number and the digest of
their heads. A signature over the log's length and Merkle root therefore covers every answered step.
"""

import json
from typing import NamedTuple

import rfc8785
from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from agentworld.records.base import Digest, digest_bytes
from agentworld.records.episode import CloseReason, Episode, EpisodeStep, heads_digest
from agentworld.records.run import LOCAL_TENANT, AgentRun, RunClosing, RunOpening

Fields = dict[str, JsonValue]


class LogEntry(NamedTuple):
    """A leaf of the run's Merkle tree."""

    run: str
    sequence: int
    """1 for the first."""
    body: bytes
    """Canonical JSON (RFC 8785) of the kind, the run, the sequence and the kind's own fields."""

    @classmethod
    def of(cls, run: str, sequence: int, at: str, fields: Fields) -> "LogEntry":
        """`at` is for people; it determines no order."""
        entry = {"run": run, "sequence": sequence, "at": at, **fields}
        return cls(run, sequence, rfc8785.dumps(entry))

    @property
    def fields(self) -> Fields:
        """The fields of the body."""
        fields: Fields = json.loads(self.body)
        return fields

    @property
    def readable_fields(self) -> Fields:
        """Like `fields`, but empty for a garbled body, or one that is nested too deeply."""
        try:
            fields = from_json(self.body)
        except ValueError:
            return {}
        return fields if isinstance(fields, dict) else {}


def run_opened(run: AgentRun) -> Fields:
    """The first entry of a log."""
    opening = run.opening.model_dump(mode="json")
    return {
        "kind": "run-opened",
        "opening": opening,
        "simulator": run.simulator,
        "tenant": run.tenant,
    }


def opening_problem(run: AgentRun, first: Fields) -> str | None:
    """The difference between a run's row, which everyone reads, and its log's first entry; null if
    there is none.
    """
    try:
        opening = RunOpening.model_validate(first.get("opening"))
    except ValidationError:
        return "the run was not opened as the log says"
    rows = {**dict(run.opening), "tenant": run.tenant, "served by": run.simulator}
    tenant = first.get("tenant", LOCAL_TENANT)
    log_values = {**dict(opening), "tenant": tenant, "served by": first.get("simulator")}
    differ = [f"{name} {log_values[name]!r}" for name in rows if rows[name] != log_values[name]]
    if not differ:
        return None
    return f"the run was not opened as the log says, which has {' and '.join(differ)}"


def episode_opened(episode: Episode) -> Fields:
    """The head covers the episode's whole start; the control text is also a field, and so is the
    number of copied steps of a fork.
    """
    copied_fields: Fields = {"num_copied": episode.num_copied} if episode.num_copied else {}
    return {
        "kind": "episode-opened",
        "episode": episode.id,
        "head": episode.first_head,
        "control": episode.opened_with.control,
        **copied_fields,
    }


def new_steps(steps: list[EpisodeStep]) -> Fields:
    """Steps of any episodes of the run that were committed together, including a fork's copies."""
    return {"kind": "steps", "num_steps": len(steps), "heads": heads_digest(steps)}


def episode_closed(episode: str, num_steps: int, head: Digest, reason: CloseReason) -> Fields:
    """The episode has no step after this entry."""
    return {
        "kind": "episode-closed",
        "episode": episode,
        "num_steps": num_steps,
        "head": head,
        "reason": reason,
    }


def run_closed(closing: RunClosing) -> Fields:
    """The last entry of a log; it has the signature's digest, because the signature is stored
    separately.
    """
    signature = digest_bytes(closing.signature.encode()) if closing.signature else None
    return {
        "kind": "run-closed",
        "final_weights": closing.final_weights,
        "signature": signature,
    }

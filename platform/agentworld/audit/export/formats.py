"""Exports which simulator trained which agent as lines for other programs.

Repeated exports of an unchanged store have the same lines in the same order. An export as of a past
time has the records that existed then.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Literal

from agentworld.audit.export.openlineage import events
from agentworld.audit.export.rows import TrainedAgentRow, trained_agents
from agentworld.audit.read.evidence import as_of
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import VersionRef
from agentworld.records.attestation import Attestation
from agentworld.records.base import canonical_json
from agentworld.records.garbled import reading
from agentworld.records.statements.base import statement_kinds
from agentworld.signing.envelope import signed_at

Form = Literal["in-toto", "csv", "openlineage"]

_COLUMNS = (
    "agent",
    "version",
    "artifact",
    "run",
    "simulator",
    "world_model",
    "data",
    "episodes",
    "steps",
    "grade",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The characters that spreadsheets interpret as the start of a formula."""


def lines_of(form: Form, sources: Sources) -> Iterator[str]:
    """The lines of a format; raises EvidenceError for records that it cannot represent."""
    return _FORMS[form](sources)


def _table(sources: Sources) -> Iterator[str]:
    yield _row(_COLUMNS)
    for row in trained_agents(sources):
        yield _row(_cells(row))


def _cells(row: TrainedAgentRow) -> tuple[object, ...]:
    run = row.served
    return (
        row.version.name,
        row.version.version,
        row.artifact,
        row.run,
        run.simulator if run else "",
        row.world_model or "",
        row.data or "",
        run.num_episodes if run else "",
        run.num_steps if run else "",
        row.edge.grade if row.edge else "",
    )


def _row(cells: tuple[object, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow([_harmless(str(cell)) for cell in cells])
    return buffer.getvalue()


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _envelopes(sources: Sources) -> Iterator[str]:
    """All signed envelopes: of each run its checkpoints and weights, then the statements of all
    kinds, then each version.
    """
    for run in sorted(sources.runs(), key=lambda run: run.id):
        checkpoints = sources.ledger.logs.checkpoints(run.id)
        for length in sorted(checkpoints):
            # It has no signed time; it counts from the newest entry that it covers.
            if sources.at is None or length <= run.log_length:
                label = f"the checkpoint of length {length} of run {run.id}"
                yield _line(checkpoints[length], label)
        if run.closing and run.closing.signature:
            yield _line(run.closing.signature, f"the statement that run {run.id} was closed with")
    for row in as_of(sources.ledger.attestations.all(), sources.at, _signed_at):
        yield _line(row.envelope, f"the statement {row.name}")
    refs = [version.ref for version in sources.versions()]
    for _, line in sources.read_each(refs, lambda ref: _registration(ref, sources)):
        if line:
            yield line


def _registration(ref: VersionRef, sources: Sources) -> str | None:
    """The signed registration of a version; null if unsigned."""
    signature = sources.registry.stored(ref).signature
    return _line(signature, f"the statement that {ref} was registered with") if signature else None


def _signed_at(row: Attestation) -> str:
    return signed_at(row.envelope, statement_kinds()[row.kind])


def _line(envelope: str | bytes, label: str) -> str:
    """A signed envelope is one line; a changed one could have several."""
    with reading(label):
        return canonical_json(json.loads(envelope)).decode()


_FORMS: dict[Form, Callable[[Sources], Iterator[str]]] = {
    "in-toto": _envelopes,
    "csv": _table,
    "openlineage": events,
}

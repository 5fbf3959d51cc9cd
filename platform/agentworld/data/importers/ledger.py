"""Live episodes of the validations in a store of this project.

Answers of simulators are never imported, because a model that learns from them learns its own
errors. The import lists the runs of simulators in a ledger, and exported runs, as bad records.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Literal

from pydantic import JsonValue, ValidationError

from agentworld.data.importers.base import ImportOptions, ImportResult, NamedImporter, problem_of
from agentworld.data.importers.rows import Row, rows_of
from agentworld.data.importers.tables import table_rows
from agentworld.data.secret_search import redacted_problem
from agentworld.records.base import Digest, Record
from agentworld.records.trajectory import Trajectory
from agentworld.storage.exports import TRAJECTORIES, TRANSITIONS
from agentworld.storage.source import SourceFile

UNSIGNED = "live episode of a validation that nobody signed"
SIMULATED = "episode that a simulator answered"
_REASON = "a simulator's answers do not show a world; import live episodes"
_EXPORTS = (TRANSITIONS, TRAJECTORIES)
_COLUMNS = ("run", "simulator", "episode")


class LedgerLine(Record):
    """One row of a store: a live episode, or a run of a simulator."""

    kind: Literal["ledger"] = "ledger"
    place: str
    """The place of the row, such as `run R` or `validation V trained-live.jsonl line 3`."""
    trajectory: Trajectory | None = None
    """A live episode."""
    signed: bool = False
    """Whether the step that recorded the episode signed its digest."""
    simulator: Digest | None = None
    """The simulator that answered the episodes of a run."""
    num_episodes: int = 0
    """The number of episodes of a run."""
    problem: str = ""
    """Why a live episode is missing."""


class Ledger:
    """See `Importer`."""

    options = ImportOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the row is one of a store."""
        return isinstance(value, dict) and value.get("kind") == "ledger"

    def claims_name(self, file: SourceFile) -> bool:
        """Whether the file is one of an exported run."""
        return file.name.rpartition("/")[2] in _EXPORTS

    def read(
        self,
        file: SourceFile,
        options: ImportOptions,  # noqa: ARG002  a store says all of it
        domain: str,  # noqa: ARG002
    ) -> Iterator[ImportResult]:
        """A record is a live episode or a run; in an exported run, each episode is a record."""
        if self.claims_name(file):
            yield from _read_export(file)
            return
        yield from map(_import_row, rows_of(file))


IMPORTER: NamedImporter = Ledger()


def _import_row(row: Row) -> ImportResult:
    if row.problem:
        return ImportResult(row.place, problem=row.problem)
    try:
        line = LedgerLine.model_validate(row.value)
    except ValidationError as error:
        return ImportResult(row.place, problem=redacted_problem(error))
    if line.simulator:
        problem = f"its {line.num_episodes:,} episodes were answered by {line.simulator}: {_REASON}"
        return ImportResult(line.place, problem=problem, notes={SIMULATED: line.num_episodes})
    if line.trajectory is None:
        return ImportResult(line.place, problem=line.problem or "it holds no episode")
    if problem := problem_of(line.trajectory):
        return ImportResult(line.place, problem=problem)
    return ImportResult(line.place, line.trajectory, notes={} if line.signed else {UNSIGNED: 1})


def _read_export(file: SourceFile) -> Iterator[ImportResult]:
    """One problem for each episode; the steps of an episode follow each other."""
    for (episode, run, simulator, damage), _ in groupby(table_rows(file, _COLUMNS), _episode):
        if damage:
            yield ImportResult("", problem=damage)
        else:
            problem = f"it was answered by {simulator}: {_REASON}"
            yield ImportResult(
                f"run {run} episode {episode}", problem=problem, notes={SIMULATED: 1}
            )


def _episode(row: Row) -> tuple[JsonValue, JsonValue, JsonValue, str]:
    cells: Mapping[str, JsonValue] = row.value if isinstance(row.value, dict) else {}
    return cells.get("episode"), cells.get("run"), cells.get("simulator"), row.problem

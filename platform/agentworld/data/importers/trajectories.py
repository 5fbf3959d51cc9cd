"""Trajectories in this project's own form: JSON lines, in a file or in a folder of files."""

from collections.abc import Iterator

from pydantic import JsonValue, ValidationError

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, problem_of
from agentworld.data.importers.rows import rows_of
from agentworld.data.secret_search import redacted_problem
from agentworld.records.trajectory import Trajectory
from agentworld.storage.source import SourceFile


class Trajectories:
    """See `Importer`."""

    options = ImportOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the row is a complete trajectory."""
        try:
            Trajectory.model_validate(value)
        except ValidationError:
            return False
        return True

    def read(
        self,
        file: SourceFile,
        options: ImportOptions,  # noqa: ARG002  a trajectory says all of it
        domain: str,  # noqa: ARG002
    ) -> Iterator[ImportResult]:
        """A row is a trajectory, of the domain that it names."""
        for row in rows_of(file):
            if row.problem:
                yield ImportResult(row.place, problem=row.problem)
                continue
            try:
                trajectory = Trajectory.model_validate(row.value)
            except ValidationError as error:
                yield ImportResult(row.place, problem=redacted_problem(error))
                continue
            problem = problem_of(trajectory)
            yield ImportResult(row.place, None if problem else trajectory, problem)


IMPORTER: Importer = Trajectories()

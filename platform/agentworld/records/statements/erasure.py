"""An erasure; it is checked against the texts of its episode."""

from typing import ClassVar

from agentworld.records.base import Digest, Name
from agentworld.records.statements.base import About, Column, LedgerColumns, SignedRecord


class Erasure(SignedRecord):
    """The texts of an episode were erased."""

    kind: ClassVar[str] = "erasure"
    predicate_type: ClassVar[str] = "urn:agentworld:erasure:v1"
    folder: ClassVar[str] = "episode-erasures"
    column: ClassVar[Column] = "run"
    about: ClassVar[About] = "run"

    episode: str
    run: str
    simulator: Digest
    opening: Digest
    """The digest of the episode's opening."""
    by: Name
    at: str

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:
        """Describes it by its episode; its name contains the run."""
        return f"the erasure {name} of episode {columns.subject}"

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.episode, self.simulator, self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.opening


KIND = Erasure
